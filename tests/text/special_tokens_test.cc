#include "text/special_tokens.h"

#include <gtest/gtest.h>

#include <random>

namespace regard {
namespace {

SpecialTokens made(const std::vector<std::string>& texts) {
  SpecialTokens tokens;
  for (std::size_t i = 0; i < texts.size(); ++i) tokens.add(texts[i], static_cast<std::int32_t>(i));
  tokens.finish();
  return tokens;
}

std::vector<std::int32_t> all(const SpecialTokens& tokens, std::string_view text) {
  std::vector<std::int32_t> ids;
  for (auto match = tokens.find(text, 0); match; match = tokens.find(text, match->end)) ids.push_back(match->id);
  return ids;
}

TEST(SpecialTokens, TheLongestAtTheFirstPlace) {
  const SpecialTokens tokens = made({"<a>", "<a><b>", "<b>", "\n", "\n\n", "b>c"});
  EXPECT_EQ(all(tokens, "x<a><b>y"), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(all(tokens, "<a><a><b"), (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(all(tokens, "\n\n\n"), (std::vector<std::int32_t>{4, 3}));
  EXPECT_EQ(all(tokens, "<b>c"), (std::vector<std::int32_t>{2}));
  EXPECT_EQ(all(tokens, ""), (std::vector<std::int32_t>{}));
  const auto match = tokens.find("xy<b>z", 1);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->begin, 2u);
  EXPECT_EQ(match->end, 5u);
  EXPECT_FALSE(tokens.find("xy<b>z", 3));
}

TEST(SpecialTokens, TheLaterOfTwoWrittenTheSame) {
  EXPECT_EQ(all(made({"<s>", "<x>", "<s>"}), "<s>"), (std::vector<std::int32_t>{2}));
}

TEST(SpecialTokens, AsLookingForEachAtEachPlace) {
  std::mt19937 rng(4);
  const auto word = [&](int most) {
    std::string text;
    for (int n = 1 + static_cast<int>(rng() % static_cast<unsigned>(most)); n > 0; --n) text += "ab\xFF\0"[rng() % 4];
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> texts;
    for (unsigned n = rng() % 12; n > 0; --n) texts.push_back(word(5));
    const SpecialTokens tokens = made(texts);
    const std::string text = word(60);
    for (std::size_t from = 0; from <= text.size(); ++from) {
      std::optional<std::size_t> begin, length;
      for (std::size_t at = from; at < text.size() && !begin; ++at)
        for (const std::string& token : texts)
          if (text.compare(at, token.size(), token) == 0 && token.size() >= length.value_or(0)) {
            begin = at;
            length = token.size();
          }
      const auto match = tokens.find(text, from);
      ASSERT_EQ(match.has_value(), begin.has_value());
      if (!match) continue;
      ASSERT_EQ(match->begin, *begin);
      ASSERT_EQ(match->end, *begin + *length);
      ASSERT_EQ(texts[static_cast<std::size_t>(match->id)], text.substr(*begin, *length));
    }
  }
}

}  // namespace
}  // namespace regard
