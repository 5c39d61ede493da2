// Fractions, and answers that are compared with them.

#include "lesson/answer.h"
#include "lesson/number.h"
#include "lesson/rational.h"
#include "tensor/error.h"

namespace regard {
namespace {

TEST(Rational, IsInLowestTermsWithAPositiveDenominator) {
  EXPECT_EQ(Rational(6, -8).text(), "-3/4");
  EXPECT_EQ(Rational(0, -5).text(), "0");
  EXPECT_EQ(Rational(10, 5).text(), "2");
}

TEST(Rational, CalculatesAsOneDoesByCrossMultiplication) {
  for (std::int64_t a = -4; a <= 4; ++a)
    for (std::int64_t b = 1; b <= 6; ++b)
      for (std::int64_t c = -4; c <= 4; ++c)
        for (std::int64_t d = 1; d <= 6; ++d) {
          const Rational x(a, b), y(c, d);
          EXPECT_EQ(x + y, Rational(a * d + c * b, b * d));
          EXPECT_EQ(x - y, Rational(a * d - c * b, b * d));
          EXPECT_EQ(x * y, Rational(a * c, b * d));
          if (c != 0) {
            EXPECT_EQ(x / y, Rational(a * d, b * c));
          }
        }
}

TEST(Rational, RefusesWhatDoesNotFit) {
  const Rational large(std::int64_t{1} << 62);
  EXPECT_THROW(large + large, Error);
  EXPECT_THROW(large * Rational(2), Error);
  EXPECT_THROW(Rational(1, 0), Error);
  EXPECT_THROW(Rational(1) / Rational(0), Error);
  EXPECT_THROW(Rational(std::numeric_limits<std::int64_t>::min()), Error);
  EXPECT_THROW(power_of_two(Rational(1, 2)), Error);
  EXPECT_THROW(power_of_two(63), Error);
  EXPECT_EQ(power_of_two(-3), Rational(1, 8));
  EXPECT_EQ(large * Rational(1, std::int64_t{1} << 62), Rational(1));  // the product alone would not fit
  EXPECT_THROW(RationalMatrix(2, 2, {1}), Error);
  EXPECT_THROW(RationalMatrix(2, 3) * RationalMatrix(2, 3), Error);
}

TEST(Rational, SoftmaxOfLogarithms) {
  const RationalMatrix weights = exact_softmax({2, 3, {2, 1, 2, 0, 0, 0}});
  EXPECT_EQ(weights(0, 0), Rational(2, 5));
  EXPECT_EQ(weights(0, 1), Rational(1, 5));
  EXPECT_EQ(weights(1, 2), Rational(0));
}

TEST(Number, SaysWhatItIsExactly) {
  EXPECT_EQ(exactly(Rational(2, 5)).both(), "2/5 = 0.4");
  EXPECT_EQ(exactly(Rational(1, 3)).both(), "1/3 = 0.33333");
  EXPECT_EQ(exactly(7).both(), "7");
  EXPECT_EQ(exactly(2, Factor::ln2).text(), "2 ln 2");
  EXPECT_EQ(exactly(0, Factor::ln2).fraction(), "0");
  EXPECT_FALSE(exactly(2, Factor::ln2).fraction());
  EXPECT_EQ((Number{-std::numeric_limits<double>::infinity(), {}}).text(), "-∞");
}

TEST(Answer, IsReadInEveryWayOfWritingIt) {
  const Rational third(1, 3), two_fifths(2, 5);
  for (const char* typed : {"2/5", " 4 / 10", "0.4", "0,4", ".4", "40%", "40 %", "0.40", "0.400"})
    EXPECT_EQ(check_answer(typed, two_fifths), Verdict::right) << typed;
  for (const char* typed : {"0.41", "2", "-2/5", "-0.4", "4%", "0.5", "0"})
    EXPECT_EQ(check_answer(typed, two_fifths), Verdict::wrong) << typed;
  for (const char* typed : {"", "x", "2/0", "2/", "/5", "2//5", "0.4.0", "1e-1", "--1", "0.4 5x", "1234567890",
                            "0.1234567890", "%", "2/5%", "."})
    EXPECT_EQ(check_answer(typed, two_fifths), Verdict::unreadable) << typed;
  for (const char* typed : {"0.33", "0.333", "33%", "33.3 %", "0.333333333"})
    EXPECT_EQ(check_answer(typed, third), Verdict::right) << typed;
  for (const char* typed : {"0.3", "0.34", "0.3334", "34 %"})
    EXPECT_EQ(check_answer(typed, third), Verdict::wrong) << typed;
  EXPECT_EQ(check_answer("−1/4", Rational(-1, 4)), Verdict::right);
}

TEST(Answer, HalfOfTheLastPlaceCounts) {
  EXPECT_EQ(check_answer("0.12", Rational(1, 8)), Verdict::right);  // both neighbours of 0.125
  EXPECT_EQ(check_answer("0.13", Rational(1, 8)), Verdict::right);
  EXPECT_EQ(check_answer("0.14", Rational(1, 8)), Verdict::wrong);
}

}  // namespace
}  // namespace regard
