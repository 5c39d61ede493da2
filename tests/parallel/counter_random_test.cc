#include "parallel/counter_random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace regard {
namespace {

// Of n numbers the mean is off by the standard deviation of one, divided by sqrt(n); four times that is allowed.
constexpr int kCount = 1 << 16;

TEST(CounterRandom, NormalNumbersAreNormal) {
  const CounterRandom random(RandomUse::lesson, 1);
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double x = random.normal_at(i);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 4 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 4 * std::sqrt(2.0 / kCount));
}

TEST(CounterRandom, UniformNumbersAreUniform) {
  const CounterRandom random(RandomUse::weights, 2, 3);
  int tenths[10] = {};
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double x = random.uniform_at(i);
    ASSERT_TRUE(x >= 0 && x < 1);
    ++tenths[static_cast<int>(10 * x)];
  }
  for (const int tenth : tenths) EXPECT_NEAR(tenth, kCount * 0.1, 4 * std::sqrt(kCount * 0.1 * 0.9));
}

TEST(CounterRandom, ANumberIsThatOfItsStreamAndPlace) {
  constexpr auto kUse = RandomUse::sentences;
  CounterRandom one(kUse, 5, 6, 7), other(kUse, 5, 6, 8);
  EXPECT_EQ(one.at(3), CounterRandom(kUse, 5, 6, 7).at(3));
  EXPECT_NE(one.at(3), one.at(4));
  EXPECT_NE(one.at(3), other.at(3));
  EXPECT_NE(CounterRandom(kUse, 5, 6, 7).at(0), CounterRandom(kUse, 6, 5, 7).at(0));
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(one.next(), CounterRandom(kUse, 5, 6, 7).at(i));
  for (int i = 0; i < 1000; ++i) ASSERT_LT(one.below(7), 7u);
}

// The same keys for another use, or other keys, give other numbers from the start.
TEST(CounterRandom, NoTwoUsesShareAStream) {
  std::set<std::uint64_t> seen;
  std::size_t drawn = 0;
  for (std::uint64_t use = 1; use <= static_cast<std::uint64_t>(RandomUse::dropout); ++use)
    for (std::uint64_t a = 0; a < 12; ++a)
      for (std::uint64_t b = 0; b < 12; ++b)
        for (std::uint64_t c = 0; c < 3; ++c)
          for (std::uint64_t i = 0; i < 4; ++i, ++drawn)
            seen.insert(CounterRandom(static_cast<RandomUse>(use), a, b, c).at(i));
  EXPECT_EQ(seen.size(), drawn);
}

}  // namespace
}  // namespace regard
