// The scanners against the regular expressions they stand for, run by PCRE2.

#include "text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <pcre2.h>

#include <memory>

#include "support/errors.h"
#include "text/char_class.h"
#include "text/specs.h"

namespace regard {
namespace {

using Words = std::vector<std::string>;

// PCRE2's \s also takes U+180E, which lost the property White_Space in Unicode 6.3; so it is written out.
constexpr const char* kSpaces =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string with_spaces(std::string expression) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = expression.find(from, at)) != std::string::npos; at += to.size())
      expression.replace(at, from.size(), to);
  };
  replace("[^S", fmt::format("[^{}", kSpaces));
  replace("<S>", fmt::format("[{}]", kSpaces));
  replace("<NOT S>", fmt::format("[^{}]", kSpaces));
  return expression;
}

class Expression {
 public:
  explicit Expression(const std::string& text) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP, &error,
                              &at, nullptr));
    EXPECT_TRUE(code_) << text << " at " << at;
    match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  bool matches(const std::string& text) const {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, match_.get(),
                       nullptr) > 0;
  }

  // Every match, and what lies between two.
  Words split(const std::string& text) const {
    Words words;
    std::size_t at = 0;
    while (at < text.size()) {
      const int n = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, 0,
                                match_.get(), nullptr);
      EXPECT_TRUE(n > 0 || n == PCRE2_ERROR_NOMATCH) << n;
      if (n <= 0) break;
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match_.get());
      if (range[0] > at) words.push_back(text.substr(at, range[0] - at));
      words.push_back(text.substr(range[0], range[1] - range[0]));
      at = range[1];
    }
    if (at < text.size()) words.push_back(text.substr(at));
    return words;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> match_;
};

const Expression& gpt2_expression() {
  static const Expression made(
      with_spaces(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^S\p{L}\p{N}]+|<S>+(?!<NOT S>)|<S>+)"));
  return made;
}

Words expected(PreTokenizer rules, const std::string& text) {
  static const Expression digit(R"(\p{N})");
  static const std::string qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^S\p{L}\p{N}]+[\r\n]*)"
      R"(|<S>*[\r\n]+|<S>+(?!<NOT S>)|<S>+)";
  const auto with_digits = [&](const char* digits) {
    std::string expression = qwen2;
    return with_spaces(expression.replace(expression.find("DIGITS"), 6, digits));
  };
  static const Expression one(with_digits("")), three(with_digits("{1,3}"));
  static const Expression o200k(with_spaces(
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|\p{N}{1,3}| ?[^S\p{L}\p{N}]+[\r\n/]*|<S>*[\r\n]+|<S>+(?!<NOT S>)|<S>+)"));
  static const Expression tekken(
      with_spaces(R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                  R"(|\p{N}| ?[^S\p{L}\p{N}]+[\r\n/]*|<S>*[\r\n]+|<S>+(?!<NOT S>)|<S>+)"));
  switch (rules) {
    case PreTokenizer::gpt2:
      return gpt2_expression().split(text);
    case PreTokenizer::smollm: {
      Words words;
      for (const std::string& part : digit.split(text))
        for (std::string& word : gpt2_expression().split(part)) words.push_back(std::move(word));
      return words;
    }
    case PreTokenizer::qwen2:
      return one.split(text);
    case PreTokenizer::llama3:
      return three.split(text);
    case PreTokenizer::o200k:
      return o200k.split(text);
    case PreTokenizer::tekken:
      return tekken.split(text);
  }
  return {};
}

Words scanned(PreTokenizer rules, std::string_view text) {
  Words words;
  WordScanner scanner(rules, text);
  for (std::string_view word = scanner.next(); !word.empty(); word = scanner.next()) words.emplace_back(word);
  return words;
}

constexpr PreTokenizer kAll[] = {PreTokenizer::gpt2,   PreTokenizer::smollm, PreTokenizer::qwen2,
                                 PreTokenizer::llama3, PreTokenizer::o200k,  PreTokenizer::tekken};

// PCRE2 10.42 has Unicode 14, utf8proc 2.8 has 15: what only the later one has assigned is left out.
std::string known_to_both(const std::string& text) {
  static const Expression unassigned(R"(\p{Cn})");
  std::string kept;
  for (const std::string& part : unassigned.split(text))
    if (!unassigned.matches(part)) kept += part;
  return kept;
}

TEST(Pretokenizer, CutsAsItsExpressionDoes) {
  std::mt19937 rng(1);
  for (int i = 0; i < 4000; ++i) {
    const std::string text = known_to_both(testing::random_text(rng));
    for (const PreTokenizer rules : kAll) ASSERT_EQ(scanned(rules, text), expected(rules, text)) << text;
  }
}

TEST(Pretokenizer, EveryCharacterHasTheClassItsPropertiesSay) {
  const Expression unassigned(R"(\p{Cn})"), letter(R"(\p{L})"), number(R"(\p{N})"), newline(R"([\r\n])"),
      space(with_spaces("<S>"));
  int compared = 0;
  for (std::uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    if (unassigned.matches(text)) continue;
    const CharClass kind = letter.matches(text)    ? CharClass::letter
                           : number.matches(text)  ? CharClass::number
                           : newline.matches(text) ? CharClass::newline
                           : space.matches(text)   ? CharClass::space
                                                   : CharClass::other;
    ASSERT_EQ(code < 0x10000 ? first_plane_classes()[code] : class_beyond_first_plane(code), kind) << code;
    ++compared;
  }
  EXPECT_GT(compared, 280000);  // Unicode 14 assigns 144,697 characters; private use adds 137,468
}

TEST(Pretokenizer, CutsWhatPeopleWrite) {
  EXPECT_EQ(scanned(PreTokenizer::gpt2, "Hello  world, it's 3.14!"),
            (Words{"Hello", " ", " world", ",", " it", "'s", " 3", ".", "14", "!"}));
  EXPECT_EQ(scanned(PreTokenizer::gpt2, "IT'S  \n x"), (Words{"IT", "'", "S", "  \n", " x"}));
  EXPECT_EQ(scanned(PreTokenizer::smollm, "in 1234"), (Words{"in", " ", "1", "2", "3", "4"}));
  EXPECT_EQ(scanned(PreTokenizer::qwen2, "IT'S  \n x 12\n"), (Words{"IT", "'S", "  \n", " x", " ", "1", "2", "\n"}));
  EXPECT_EQ(scanned(PreTokenizer::llama3, "f(x);\n\n12345"), (Words{"f", "(x", ");\n\n", "123", "45"}));
  EXPECT_EQ(scanned(PreTokenizer::o200k, "HelloWORLD'S a/b\n//x"),
            (Words{"Hello", "WORLD'S", " a", "/b", "\n", "//", "x"}));
  EXPECT_EQ(scanned(PreTokenizer::tekken, "HelloWORLD'S 12/b\n//x"),
            (Words{"Hello", "WORLD", "'S", " ", "1", "2", "/b", "\n", "//", "x"}));
  EXPECT_EQ(scanned(PreTokenizer::o200k, "A\u6211BC"), (Words{"A\u6211", "BC"}));
  EXPECT_EQ(scanned(PreTokenizer::o200k, "\u0301ABC"), (Words{"\u0301", "ABC"}));
  // The long s is an s without regard to case, and only there.
  EXPECT_EQ(scanned(PreTokenizer::qwen2, "it'\u017Fa"), (Words{"it", "'\u017F", "a"}));
  EXPECT_EQ(scanned(PreTokenizer::gpt2, "it'\u017Fa"), (Words{"it", "'", "\u017Fa"}));
}

TEST(Pretokenizer, AByteThatIsNotUtf8IsNoLetter) {
  EXPECT_EQ(scanned(PreTokenizer::gpt2, "caf\xE9 ol\xE9"), (Words{"caf", "\xE9", " ol", "\xE9"}));
  EXPECT_EQ(scanned(PreTokenizer::llama3, "\xE4\xB8x"), (Words{"\xE4\xB8", "x"}));
  EXPECT_EQ(scanned(PreTokenizer::llama3, "a \xFFx"), (Words{"a", " \xFF", "x"}));
  EXPECT_EQ(scanned(PreTokenizer::qwen2, "\xFFx"), (Words{"\xFFx"}));
}

TEST(Pretokenizer, WordsOfAnyBytesMakeUpTheText) {
  std::mt19937 rng(2);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = testing::random_bytes(rng);
    for (const PreTokenizer rules : kAll) {
      std::string together;
      for (const std::string& word : scanned(rules, text)) together += word;
      ASSERT_EQ(together, text);
    }
  }
}

TEST(Pretokenizer, NamesAreThoseOfFiles) {
  EXPECT_EQ(pretokenizer_named("gpt-2"), PreTokenizer::gpt2);
  EXPECT_EQ(pretokenizer_named("smollm"), PreTokenizer::smollm);
  EXPECT_EQ(pretokenizer_named("qwen2"), PreTokenizer::qwen2);
  EXPECT_EQ(pretokenizer_named("llama-bpe"), PreTokenizer::llama3);
  for (const std::string& name : pretokenizer_names()) EXPECT_NO_THROW(pretokenizer_named(name));
  EXPECT_EQ(pretokenizer_named("deepseek-r1-qwen"), PreTokenizer::qwen2);
  EXPECT_FALSE(normalizes("deepseek-r1-qwen"));
  EXPECT_EQ(pretokenizer_named("dbrx"), pretokenizer_named("falcon3"));
  EXPECT_FALSE(takes_whole_words("dbrx") || begins_with_bos("dbrx"));
  EXPECT_TRUE(takes_whole_words("falcon3") && begins_with_bos("falcon3"));
  const auto error = testing::error_of([] { pretokenizer_named("bloom"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::unsupported);
  EXPECT_NE(error->message.find("'bloom'"), std::string::npos);
  for (const std::string& name : pretokenizer_names()) EXPECT_NE(error->hint.find(name), std::string::npos) << name;
  testing::expect_error(ErrorCode::unsupported, {"does not say"}, [] { pretokenizer_named(""); });
}

}  // namespace
}  // namespace regard
