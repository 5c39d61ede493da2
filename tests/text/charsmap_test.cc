#include "text/charsmap.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "text/specs.h"

namespace regard {
namespace {

// Units and texts as a file has them.
std::string blob(const std::vector<std::uint32_t>& units, const std::string& texts) {
  std::string bytes;
  const auto put = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  };
  put(static_cast<std::uint32_t>(4 * units.size()));
  for (const std::uint32_t unit : units) put(unit);
  return bytes + texts;
}

std::string applied(const Charsmap& map, std::string_view text) {
  const auto result = map.apply(text);
  return std::string(result ? result->text() : text);
}

// A trie by hand: the root's offset is 256, so that the unit of "a" is 256 ^ 'a'; its leaf and that of "ab" lie behind.
Charsmap a_and_ab() {
  std::vector<std::uint32_t> units(1024);
  const auto offset = [](std::uint32_t to) { return to << 10; };
  units[0] = offset(256);
  units[256 ^ 'a'] = 'a' | offset((256 ^ 'a') ^ 512) | 1u << 8;  // goes to 512, has a leaf there
  units[512] = 0x80000000u | 0;                                  // "a" is written as the text at 0
  units[512 ^ 'b'] = 'b' | offset((512 ^ 'b') ^ 768) | 1u << 8;
  units[768] = 0x80000000u | 4;
  return Charsmap(blob(units, std::string("one\0two!\0", 9)));
}

TEST(Charsmap, TheLongestEntryThatFits) {
  const Charsmap map = a_and_ab();
  EXPECT_EQ(applied(map, "xaxabab\xFF"), "xonextwo!two!\xFF");
  EXPECT_FALSE(map.apply("xyz"));
  const auto result = map.apply("xab");
  EXPECT_EQ(result->source(1, 5).begin, 1);
  EXPECT_EQ(result->source(1, 5).end, 3);
}

TEST(Charsmap, ByGraphemeTheShortestEntry) {
  const Charsmap map = a_and_ab();
  const auto result = map.apply_by_grapheme("ab a\u0301b");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text(), "oneb oneb");  // a grapheme that begins with an entry is replaced whole
}

TEST(Charsmap, RefusesWhatIsCut) {
  const std::string whole = blob({1, 2, 3}, "x");
  for (std::size_t n = 0; n < 16; ++n)
    testing::expect_error(ErrorCode::bad_input, {"charsmap"}, [&] { Charsmap(whole.substr(0, n)); });
  EXPECT_NO_THROW(Charsmap(whole.substr(0, 16)));
  for (const std::uint32_t bytes : {0u, 3u, 13u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    std::string wrong = whole;
    for (std::size_t i = 0; i < 4; ++i) wrong[i] = static_cast<char>(bytes >> (8 * i));
    testing::expect_error(ErrorCode::bad_input, {"charsmap"}, [&] { Charsmap{wrong}; });
  }
}

TEST(Charsmap, AnyTrieEndsWithinItsBounds) {
  std::mt19937 rng(11);
  for (int round = 0; round < 400; ++round) {
    std::vector<std::uint32_t> units(1 + rng() % 600);
    for (std::uint32_t& unit : units) {
      // Often a unit that leads on, or round in a circle.
      unit = rng() % 2 ? static_cast<std::uint32_t>(rng()) : (rng() % 256) | (rng() % 2) << 8 | (rng() % 1024) << 10;
    }
    const Charsmap map(blob(units, testing::random_bytes(rng)));
    for (int i = 0; i < 5; ++i) {
      const std::string text = testing::random_bytes(rng);
      try {
        map.apply(text);
        map.apply_by_grapheme(text);
      } catch (const Error& error) {
        EXPECT_NE(error.message.find("times as long"), std::string::npos);
      }
    }
  }
}

// Every unit leads back to itself and has a leaf: a look-up could go round until the text ends.
TEST(Charsmap, ACircleIsNoTrap) {
  std::vector<std::uint32_t> units(512);
  units[0] = 256 << 10;
  units[256 ^ 'a'] = 'a' | ((256u ^ 'a') ^ 256u) << 10;
  const Charsmap map(blob(units, "x"));
  EXPECT_FALSE(map.apply(std::string(1 << 20, 'a')));
}

TEST(Charsmap, EndlessTextsAreRefused) {
  std::vector<std::uint32_t> units(1024);
  units[0] = 256 << 10;
  units[256 ^ 'a'] = 'a' | ((256u ^ 'a') ^ 512u) << 10 | 1u << 8;
  units[512] = 0x80000000u;
  const Charsmap map(blob(units, std::string(1 << 20, 'b')));
  testing::expect_error(ErrorCode::bad_input, {"times as long"}, [&] { map.apply(std::string(1000, 'a')); });
}

}  // namespace
}  // namespace regard
