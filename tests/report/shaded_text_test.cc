#include "report/shaded_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "support/plain_page.h"
#include "support/targets.h"

namespace regard {
namespace {

std::vector<ShadedToken> tokens(const std::vector<std::pair<std::string, double>>& pieces) {
  std::vector<ShadedToken> tokens;
  for (const auto& [bytes, value] : pieces) tokens.push_back({.bytes = bytes, .value = value, .note = {}});
  return tokens;
}

TEST(ShadedText, WrapsBetweenTokensAndObeysLineFeeds) {
  const auto text = tokens({{"When", 0}, {" Mary", 1}, {" and\n", 0}, {"\n", 0}, {"John", 0}});
  EXPECT_EQ(testing::plain(shaded_text(text, {.width = 10})), "When Mary\n and↵\n↵\nJohn\n");
  EXPECT_EQ(testing::plain(shaded_text(text, {.width = 9})), "When Mary\n and↵\n↵\nJohn\n");
  EXPECT_EQ(testing::plain(shaded_text(text, {.width = 8})), "When\n Mary\n and↵\n↵\nJohn\n");
}

TEST(ShadedText, NeverWiderThanAskedWhateverTheText) {
  testing::Numbers numbers(3);
  const std::vector<std::string> alphabet = {
      "a", " b", "漢", "字 ", "😀", "\xe4", "\n", "\t", "loooooooooong", "👩‍👩‍👧", "e\u0301"};
  for (int width = 6; width < 24; ++width) {
    std::vector<ShadedToken> text;
    for (int i = 0; i < 60; ++i)
      text.push_back({.bytes = alphabet[numbers.below(static_cast<std::int64_t>(alphabet.size()))],
                      .value = (numbers.next() + 1) / 2,
                      .note = {}});
    for (const bool coloured : {true, false})
      for (const Line& line : shaded_text(text, {.width = width, .most_lines = 1000, .coloured = coloured}))
        EXPECT_LE(columns(line), width) << terminal_text(line, Colours::none);
  }
}

TEST(ShadedText, ShadesAreOnTheRightColumns) {
  const auto lines = shaded_text(tokens({{"漢字", 0}, {" Mary", 1}, {"x", 0.5}}), {.width = 40, .coloured = false});
  EXPECT_EQ(testing::plain(lines), "漢字 Maryx\n    █████▅\n");
  const auto coloured = shaded_text(tokens({{"漢字", 0}, {" Mary", 1}}), {.width = 40});
  ASSERT_EQ(coloured.size(), 1u);
  EXPECT_EQ(coloured[0][0].style.heat, 0);
  EXPECT_EQ(coloured[0][1].style.heat, 1);
}

TEST(ShadedText, ALongTextKeepsItsEndsAndItsStrongestLines) {
  std::vector<ShadedToken> text;
  for (int i = 0; i < 1000; ++i)
    text.push_back({.bytes = "word" + std::to_string(i % 10) + "\n", .value = i == 500 ? 1 : 0.1, .note = {}});
  const auto lines = shaded_text(text, {.width = 40, .most_lines = 6});
  const std::string shown = testing::plain(lines);
  ASSERT_EQ(lines.size(), 8u) << shown;
  EXPECT_NE(shown.find("498 lines (498 tokens)"), std::string::npos) << shown;
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const Line& line) { return line[0].style.heat == 1; }));
}

TEST(ShadedText, NothingGivesOneEmptyLine) { EXPECT_EQ(testing::plain(shaded_text({}, {})), "\n"); }

TEST(WholeCharacters, BytesOfOneCharacterComeTogether) {
  const std::vector<std::string> bytes = {"a", " \xe6", "\xbc", "\xa2", "字", "\xff", "b", "\xf0\x9f", "\x98\x80"};
  const std::vector<TokenRange> ranges = whole_characters(bytes);
  std::vector<std::pair<std::size_t, std::size_t>> got;
  for (const TokenRange& range : ranges) got.push_back({range.begin, range.end});
  const std::vector<std::pair<std::size_t, std::size_t>> expected = {{0, 1}, {1, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 9}};
  EXPECT_EQ(got, expected);
}

TEST(Bars, AreAsLongAsTheirValue) {
  EXPECT_EQ(bar(0, 10), "");
  EXPECT_EQ(bar(1, 3), "███");
  EXPECT_EQ(bar(0.5, 3), "█▌");
  EXPECT_EQ(bar(1e-9, 10), "▏");
  EXPECT_EQ(bar(5, 2), "██");
  EXPECT_EQ(bar_glyph(0.001), " ");
  EXPECT_EQ(bar_glyph(0.05), "▁");
  EXPECT_EQ(bar_glyph(1), "█");
}

}  // namespace
}  // namespace regard
