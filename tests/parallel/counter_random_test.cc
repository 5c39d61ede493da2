#include "parallel/counter_random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace regard {
namespace {

// Of n numbers the mean is off by the standard deviation of one, divided by sqrt(n); four times that is allowed.
constexpr int kCount = 1 << 16;

TEST(CounterRandom, NormalNumbersAreNormal) {
  const CounterRandom random(1);
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
  const CounterRandom random(2, 3);
  int tenths[10] = {};
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double x = random.uniform_at(i);
    ASSERT_TRUE(x >= 0 && x < 1);
    ++tenths[static_cast<int>(10 * x)];
  }
  for (const int tenth : tenths) EXPECT_NEAR(tenth, kCount * 0.1, 4 * std::sqrt(kCount * 0.1 * 0.9));
}

TEST(CounterRandom, ANumberIsThatOfItsStreamAndPlace) {
  CounterRandom one(5, 6, 7), other(5, 6, 8);
  EXPECT_EQ(one.at(3), CounterRandom(5, 6, 7).at(3));
  EXPECT_NE(one.at(3), one.at(4));
  EXPECT_NE(one.at(3), other.at(3));
  EXPECT_NE(CounterRandom(5, 6, 7).at(0), CounterRandom(6, 5, 7).at(0));
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(one.next(), CounterRandom(5, 6, 7).at(i));
  for (int i = 0; i < 1000; ++i) ASSERT_LT(one.below(7), 7u);
}

}  // namespace
}  // namespace regard
