// exp, log, tanh and erf over all of f32: distance from the truth, special values, equal bits on every target.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/activation.h"
#include "support/special_floats.h"
#include "support/targets.h"

namespace regard {
namespace {

using testing::on_each_target;
using testing::same_bits;
using testing::ulps;

using testing::kInf;
using testing::kNan;

struct Function {
  const char* name;
  void (*fast)(const float*, float*, std::int64_t);
  long double (*truth)(long double);  // 64 bits of mantissa: 2^40 times finer than f32
  double allowed_ulps;                // what the comment in the header promises
};

const Function kFunctions[] = {
    {"exp", exp, [](long double x) { return std::exp(x); }, 0.92},
    {"log", log, [](long double x) { return std::log(x); }, 0.95},
    {"tanh", tanh, [](long double x) { return std::tanh(x); }, 1.4},
    {"erf", erf, [](long double x) { return std::erf(x); }, 1.1},
};

std::vector<float> values(const Function& f, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  f.fast(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  return y;
}

// Every `step`-th of the 2^32 numbers, NaN of every kind among them, and all that lie within 4096 of a power of two or
// of `near`, where ranges are joined.
std::vector<float> sample(std::uint32_t step, std::span<const float> near) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += step)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  const auto around = [&](float value, std::int64_t width) {
    const std::int64_t centre = std::bit_cast<std::uint32_t>(value);
    for (std::int64_t bits = centre - width; bits <= centre + width; ++bits)
      x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  };
  for (float value : near) around(value, 4096), around(-value, 4096);
  for (int e = -149; e < 128; ++e) around(std::ldexp(1.0f, e), 16), around(-std::ldexp(1.0f, e), 16);
  return x;
}

// exp: where the result leaves the normal numbers and where it overflows, and the odd multiples of ln 2 / 2 where the
// power of two changes. log: 2/3 and 4/3. tanh, erf: where the polynomial ends and where 1 begins.
const float kJoints[] = {87.3365402f, 88.7228317f, 103.972f, 0.34657359f, 1.03972077f, 2.0f / 3, 4.0f / 3,
                         1.0f,        0.625f,      9.02f,    0.921875f,   3.92f,       4.0f,     16.64f};

TEST(Math, WithinTheStatedDistanceFromTheTruthOverTheWholeRange) {
  const std::vector<float> x = sample(1511, kJoints);
  for (const Function& f : kFunctions) {
    SCOPED_TRACE(f.name);
    const std::vector<float> y = values(f, x);
    const bool is_exp = std::string(f.name) == "exp";
    double worst = 0;
    float worst_at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double truth = f.truth(x[i]);
      if (is_exp && truth < 0x1p-126L) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]), 0u) << "exp(" << x[i] << ") must be +0, not subnormal";
        continue;
      }
      const double error = ulps(y[i], static_cast<double>(truth));
      if (error > worst) worst = error, worst_at = x[i];
    }
    EXPECT_LE(worst, f.allowed_ulps) << "at " << worst_at;
  }
}

TEST(Math, SameBitsOnEveryTargetOverTheWholeRange) {
  const std::vector<float> x = sample(3989, kJoints);
  for (const Function& f : kFunctions) {
    SCOPED_TRACE(f.name);
    std::vector<float> expected;
    on_each_target([&](const std::string&) {
      const std::vector<float> y = values(f, x);
      if (expected.empty()) expected = y;
      EXPECT_TRUE(same_bits(expected, y));
    });
  }
}

TEST(Math, SpecialValues) {
  struct Case {
    int function;
    float x, y;
  };
  const float max = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const Case cases[] = {
      {0, 0.0f, 1.0f},   {0, -0.0f, 1.0f},  {0, kInf, kInf},   {0, -kInf, 0.0f},        {0, kNan, kNan},
      {0, max, kInf},    {0, -max, 0.0f},   {0, tiny, 1.0f},   {0, 88.7228394f, kInf},  {0, -87.3365479f, 0.0f},
      {1, 0.0f, -kInf},  {1, -0.0f, -kInf}, {1, kInf, kInf},   {1, -kInf, kNan},        {1, kNan, kNan},
      {1, 1.0f, 0.0f},   {1, -tiny, kNan},  {1, -1.0f, kNan},  {1, tiny, -103.278931f}, {2, 0.0f, 0.0f},
      {2, -0.0f, -0.0f}, {2, kInf, 1.0f},   {2, -kInf, -1.0f}, {2, kNan, kNan},         {2, max, 1.0f},
      {2, -max, -1.0f},  {2, tiny, tiny},   {2, -tiny, -tiny}, {3, 0.0f, 0.0f},         {3, -0.0f, -0.0f},
      {3, kInf, 1.0f},   {3, -kInf, -1.0f}, {3, kNan, kNan},   {3, max, 1.0f},          {3, -max, -1.0f},
      {3, tiny, tiny},   {3, -tiny, -tiny},
  };
  on_each_target([&](const std::string&) {
    for (const Case& c : cases) {
      const float y = values(kFunctions[c.function], {c.x})[0];
      if (std::isnan(c.y)) {
        EXPECT_TRUE(std::isnan(y)) << kFunctions[c.function].name << "(" << c.x << ") = " << y;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(y), std::bit_cast<std::uint32_t>(c.y))
            << kFunctions[c.function].name << "(" << c.x << ") = " << y << ", not " << c.y;
      }
    }
  });
}

TEST(Math, OddFunctionsAreOddToTheBit) {
  const std::vector<float> x = sample(99991, kJoints);
  std::vector<float> minus_x(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) minus_x[i] = -x[i];
  for (int f : {2, 3}) {
    const std::vector<float> y = values(kFunctions[f], x);
    const std::vector<float> z = values(kFunctions[f], minus_x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!std::isnan(x[i])) {
        ASSERT_EQ(y[i], -z[i]) << kFunctions[f].name << " at " << x[i];
      }
    }
  }
}

TEST(Math, NoLaneDependsOnItsNeighboursOrOnTheLength) {
  testing::Numbers numbers(1);
  const std::vector<float> x = numbers.vector(67, 20);
  on_each_target([&](const std::string&) {
    for (const Function& f : kFunctions) {
      const std::vector<float> y = values(f, x);
      for (std::size_t n = 0; n < x.size(); ++n) {
        const std::vector<float> part(x.begin() + static_cast<std::ptrdiff_t>(n), x.end());
        const std::vector<float> expected(y.begin() + static_cast<std::ptrdiff_t>(n), y.end());
        ASSERT_TRUE(same_bits(expected, values(f, part))) << f.name << " from " << n;
      }
    }
  });
}

TEST(Math, TouchesNothingPastTheEndAndWorksInPlace) {
  on_each_target([&](const std::string&) {
    for (const Function& f : kFunctions) {
      for (std::int64_t n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 33}) {
        std::vector<float> y(static_cast<std::size_t>(n) + 1, 0.5f);
        const float expected = values(f, {0.5f})[0];
        f.fast(y.data(), y.data(), n);
        for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(y[static_cast<std::size_t>(i)], expected);
        EXPECT_EQ(y.back(), 0.5f) << f.name << " of " << n;
      }
    }
  });
}

}  // namespace
}  // namespace regard
