#include "text/expression.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/core.h>
#include <pcre2.h>

#include <algorithm>

#include "tensor/error.h"
#include "text/display.h"
#include "text/utf8.h"

namespace regard {
namespace {

constexpr std::size_t kLongestPattern = 65536;
constexpr std::uint32_t kMostSteps = 10000000;  // of one match: PCRE2's own default

// Both engines write most of it alike. What differs: PCRE2's \s also takes U+180E, which lost the property White_Space
// in Unicode 6.3, and its \w leaves marks out, so both are written out; Oniguruma's \h is a hexadecimal digit, && in a
// class is an intersection and a + behind {n,m} repeats: patterns with those are refused instead of read differently.
std::string translated(const std::string& pattern) {
  const auto refuse = [&](std::string_view what) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("the tokenizer's regular expression {} has {}, which is not supported", display(pattern), what));
  };
  static constexpr std::string_view kSpaces =
      R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
  static constexpr std::string_view kWord =
      R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
  std::string result;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (c == '\\' && next != '\0') {
      if (next == 'h' || next == 'H' || next == 'X' || next == 'R' || next == 'K' || next == 'G' || next == 'C')
        refuse(fmt::format("\\{}", next));
      // \p{L}, whose brace is no count.
      if ((next == 'p' || next == 'P') && i + 2 < pattern.size() && pattern[i + 2] == '{') {
        const std::size_t end = std::min(pattern.find('}', i), pattern.size() - 1);
        result += pattern.substr(i, end + 1 - i);
        i = end;
        continue;
      }
      if (next == 'b' || next == 'B') refuse("a word boundary");
      if (next == 'w')
        result += in_class ? std::string(kWord) : fmt::format("[{}]", kWord);
      else if (next == 'W' && !in_class)
        result += fmt::format("[^{}]", kWord);
      else if (next == 's')
        result += in_class ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
      else if (next == 'S' && !in_class)
        result += fmt::format("[^{}]", kSpaces);
      else
        result.append({c, next});
      ++i;
      continue;
    }
    if (in_class && c == '&' && next == '&') refuse("an intersection of classes");
    if (in_class && c == '[' && next != ':') refuse("a class within a class");
    if (!in_class && c == '}' && next == '+') refuse("a + behind a count");
    if (c == '(' && next == '*') refuse("a verb");
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    result += c;
    if (c == '[' && in_class && next == '^') {
      result += next;
      ++i;
    }
  }
  return result;
}

}  // namespace

struct Expression::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Expression::Expression(const std::string& pattern) : code_(std::make_unique<Code>()), pattern_(pattern) {
  if (pattern.size() > kLongestPattern)
    throw Error(ErrorCode::unsupported,
                fmt::format("a regular expression of {} bytes in a tokenizer is too long", pattern.size()));
  const std::string text = translated(pattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_MULTILINE, &error, &at, nullptr);
  if (code_->code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof message);
    throw Error(ErrorCode::unsupported, fmt::format("the tokenizer's regular expression {} is not understood: {}",
                                                    display(pattern), reinterpret_cast<const char*>(message)));
  }
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);  // where it cannot, the expression is interpreted
}

Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

struct Expression::Matches::State {
  const Expression& expression;
  std::string_view text;
  std::size_t at = 0;
  pcre2_match_data* data;
  pcre2_match_context* context;

  State(const Expression& expression, std::string_view text)
      : expression(expression),
        text(text),
        data(pcre2_match_data_create_from_pattern(expression.code_->code, nullptr)),
        context(pcre2_match_context_create(nullptr)) {
    pcre2_set_match_limit(context, kMostSteps);
  }
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
};

Expression::Matches::Matches(const Expression& expression, std::string_view text)
    : state_(std::make_unique<State>(expression, text)) {}
Expression::Matches::~Matches() = default;

std::optional<Expression::Match> Expression::Matches::next() {
  State& s = *state_;
  while (s.at < s.text.size()) {
    const int n = pcre2_match(s.expression.code_->code, reinterpret_cast<PCRE2_SPTR>(s.text.data()), s.text.size(),
                              s.at, 0, s.data, s.context);
    if (n == PCRE2_ERROR_NOMATCH) break;
    if (n < 0)
      throw Error(ErrorCode::unsupported,
                  fmt::format("the tokenizer's regular expression {} takes too long on this text (PCRE2 error {})",
                              display(s.expression.pattern_), n));
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(s.data);
    const Match match{range[0], range[1]};
    if (match.end <= match.begin) {  // \K is refused, so the end is never before the beginning
      if (match.begin >= s.text.size()) break;
      s.at = match.begin + character_at(s.text, match.begin).length;
      continue;
    }
    s.at = match.end;
    return match;
  }
  s.at = s.text.size();
  return std::nullopt;
}

}  // namespace regard
