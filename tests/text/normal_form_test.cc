#include "text/normal_form.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>

#include "text/specs.h"

namespace regard {
namespace {

std::string nfc(std::string_view text) {
  const auto rewritten = normal_form_c(text);
  return std::string(rewritten ? rewritten->text() : text);
}

std::string by_utf8proc(const std::string& text, int form = UTF8PROC_COMPOSE) {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t n =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &out, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | form));
  EXPECT_GE(n, 0);
  const std::string result(reinterpret_cast<const char*>(out), n < 0 ? 0 : static_cast<std::size_t>(n));
  std::free(out);
  return result;
}

TEST(NormalForm, ComposesAndOrders) {
  EXPECT_EQ(nfc("cafe\u0301"), "caf\u00E9");
  EXPECT_EQ(nfc("a\u0308\u0323"), "\u1EA1\u0308");     // the mark below comes first and composes
  EXPECT_EQ(nfc("\u212B"), "\u00C5");                  // the angstrom sign is a letter
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");      // a syllable of three parts
  EXPECT_EQ(nfc("\uAC00\u11A8"), "\uAC01");            // and of two
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");            // excluded from composition
  EXPECT_EQ(nfc("\u0344"), "\u0308\u0301");            // a mark that is two
  EXPECT_EQ(nfc("\u09C7\u09BE"), "\u09CB");            // two that are no marks by class
  EXPECT_EQ(nfc("\xFF\u0301\xE4"), "\xFF\u0301\xE4");  // with a broken byte nothing combines
  EXPECT_EQ(nfc("e\xFF\u0301"), "e\xFF\u0301");
  EXPECT_FALSE(normal_form_c("Hello, caf\u00E9 \uAC01 \U0001F600 e\xCC"));  // as it is
  EXPECT_FALSE(normal_form_c(""));
}

TEST(NormalForm, AgreesWithUtf8procOnWholeTexts) {
  std::mt19937 rng(3);
  int changed = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string text = testing::random_text(rng);
    const std::string expected = by_utf8proc(text);
    ASSERT_EQ(nfc(text), expected) << text;
    ASSERT_FALSE(normal_form_c(expected)) << text;
    changed += expected != text ? 1 : 0;
  }
  EXPECT_GT(changed, 1000);
}

TEST(NormalForm, TheOtherFormsAgreeToo) {
  constexpr std::pair<NormalForm, int> kForms[] = {{NormalForm::d, UTF8PROC_DECOMPOSE},
                                                   {NormalForm::kc, UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
                                                   {NormalForm::kd, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};
  std::mt19937 rng(14);
  for (const auto& [form, options] : kForms) {
    int changed = 0;
    for (int i = 0; i < 3000; ++i) {
      const std::string text = testing::random_text(rng);
      const auto rewritten = normal_form(text, form);
      const std::string expected = by_utf8proc(text, options);
      ASSERT_EQ(rewritten ? rewritten->text() : text, expected) << text;
      ASSERT_FALSE(normal_form(expected, form)) << text;
      changed += expected != text ? 1 : 0;
    }
    EXPECT_GT(changed, 500);
  }
}

TEST(NormalForm, EveryCharacterBehindALetter) {
  for (std::uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text = "a";
    append_utf8(text, code);
    text += "\u0301";
    ASSERT_EQ(nfc(text), by_utf8proc(text)) << code;
  }
}

TEST(NormalForm, RememberWhereBytesCameFrom) {
  const auto text = normal_form_c("xe\u0301y\u212B");  // x 0, e 1, mark 2-3, y 4, sign 5-7
  ASSERT_TRUE(text);
  ASSERT_EQ(text->text(), "x\u00E9y\u00C5");  // x 0, e 1-2, y 3, A 4-5
  const auto range = [&](std::int64_t begin, std::int64_t end) {
    const Rewritten::Range source = text->source(begin, end);
    return std::pair(source.begin, source.end);
  };
  EXPECT_EQ(range(0, 1), std::pair(std::int64_t{0}, std::int64_t{1}));
  EXPECT_EQ(range(1, 3), std::pair(std::int64_t{1}, std::int64_t{4}));
  EXPECT_EQ(range(1, 2), std::pair(std::int64_t{1}, std::int64_t{4}));  // half a composed letter is all of it
  EXPECT_EQ(range(2, 4), std::pair(std::int64_t{1}, std::int64_t{5}));
  EXPECT_EQ(range(3, 4), std::pair(std::int64_t{4}, std::int64_t{5}));
  EXPECT_EQ(range(3, 6), std::pair(std::int64_t{4}, std::int64_t{8}));
  EXPECT_EQ(range(0, 6), std::pair(std::int64_t{0}, std::int64_t{8}));
  // A mark that stayed behind a letter that composed keeps its own range.
  const auto marked = normal_form_c("o\u0323\u0301");
  ASSERT_TRUE(marked);
  ASSERT_EQ(marked->text(), "\u1ECD\u0301");
  EXPECT_EQ(marked->source(0, 3).end, 3);
  EXPECT_EQ(marked->source(3, 5).begin, 3);
}

// Ordering marks one swap at a time would take the square of their number.
TEST(NormalForm, AMillionMarksInDisorder) {
  std::string text = "a", ordered = "a";
  for (int i = 0; i < 300000; ++i) text += "\u0301\u0323";
  const std::string result = nfc(text);
  EXPECT_EQ(result.substr(0, 5), "\u1EA1\u0323");
  EXPECT_EQ(result.substr(result.size() - 2), "\u0301");
  EXPECT_EQ(result.size(), text.size());  // one mark of two bytes went into a letter of three instead of one
}

}  // namespace
}  // namespace regard
