#include "kernels/softmax.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/activation.h"
#include "kernels/reference.h"
#include "support/canonical_sum.h"
#include "support/special_floats.h"
#include "support/targets.h"

namespace regard {
namespace {

using testing::canonical_sum;
using testing::Numbers;
using testing::same_bits;
using testing::within_law_1;

using testing::kInf;
using testing::kNan;
const std::int64_t kSizes[] = {1, 2, 3, 5, 8, 13, 16, 17, 40, 128, 1000, 4096, 4097, 49152};

std::vector<float> softmax_of(const std::vector<float>& x) {
  std::vector<float> p(x.size());
  softmax(x.data(), p.data(), static_cast<std::int64_t>(x.size()));
  return p;
}
std::vector<float> log_softmax_of(const std::vector<float>& x) {
  std::vector<float> p(x.size());
  log_softmax(x.data(), p.data(), static_cast<std::int64_t>(x.size()));
  return p;
}
float log_sum_exp_of(const std::vector<float>& x) { return log_sum_exp(x.data(), static_cast<std::int64_t>(x.size())); }

TEST(Softmax, Law1) {
  Numbers numbers(11);
  for (std::int64_t n : kSizes) {
    for (auto [scale, offset] : {std::pair{1.0f, 0.0f}, {15.0f, 0.0f}, {5.0f, 300.0f}, {5.0f, -3e4f}}) {
      SCOPED_TRACE(fmt::format("{} numbers, scale {}, offset {}", n, scale, offset));
      std::vector<float> p, p32, lp, lp32, lse, lse32;
      std::vector<double> p64, lp64, lse64;
      // Several rows: the largest error of a few numbers says nothing.
      for (std::int64_t row = 0; row < std::max<std::int64_t>(4, 4000 / n); ++row) {
        std::vector<float> x = numbers.vector(n, scale);
        for (float& v : x) v += offset;
        const auto append = [](auto& all, const auto& part) { all.insert(all.end(), part.begin(), part.end()); };
        std::vector<float> plain(x.size());
        std::vector<double> exact(x.size());
        reference::softmax<float>(x, plain), reference::softmax<double>(x, exact);
        append(p, softmax_of(x)), append(p32, plain), append(p64, exact);
        reference::log_softmax<float>(x, plain), reference::log_softmax<double>(x, exact);
        append(lp, log_softmax_of(x)), append(lp32, plain), append(lp64, exact);
        lse.push_back(log_sum_exp_of(x));
        lse32.push_back(reference::log_sum_exp<float>(x)), lse64.push_back(reference::log_sum_exp<double>(x));
      }
      EXPECT_TRUE(within_law_1(p, p32, p64));
      EXPECT_TRUE(within_law_1(lp, lp32, lp64));
      EXPECT_TRUE(within_law_1(lse, lse32, lse64));
    }
  }
}

TEST(Softmax, SumsInTheCanonicalOrder) {
  Numbers numbers(12);
  for (std::int64_t n : kSizes) {
    const std::vector<float> x = numbers.vector(n, 9);
    const float largest = *std::max_element(x.begin(), x.end());
    std::vector<float> e(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) e[i] = x[i] - largest;
    exp(e.data(), e.data(), n);
    const float sum = canonical_sum(n, [&](float s, std::int64_t i) { return s + e[static_cast<std::size_t>(i)]; });
    float log_sum;
    log(&sum, &log_sum, 1);
    std::vector<float> p(x.size()), lp(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      p[i] = e[i] / sum;
      lp[i] = (x[i] - largest) - log_sum;
    }
    EXPECT_TRUE(same_bits(p, softmax_of(x))) << n;
    EXPECT_TRUE(same_bits(lp, log_softmax_of(x))) << n;
    EXPECT_EQ(log_sum_exp_of(x), largest + log_sum) << n;
  }
}

TEST(Softmax, SameBitsOnEveryTarget) {
  Numbers numbers(13);
  for (std::int64_t n : kSizes) {
    SCOPED_TRACE(n);
    const std::vector<float> x = numbers.vector(n, 20);
    testing::expect_same_bits_everywhere([&] {
      std::vector<float> all = softmax_of(x), log_p = log_softmax_of(x);
      all.insert(all.end(), log_p.begin(), log_p.end());
      all.push_back(log_sum_exp_of(x));
      return all;
    });
  }
}

TEST(Softmax, TheBooksBalance) {
  Numbers numbers(14);
  for (std::int64_t n : kSizes) {
    const std::vector<float> p = softmax_of(numbers.vector(n, 10));
    // The quotient, and the sum: a chain of at most 256 in a block, its tree, and the chain of blocks
    const double chain = static_cast<double>(std::min<std::int64_t>(n, 4096) / 16 + 4 + n / 4096);
    const double allowed = (2 + chain) * 0x1p-24;
    EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1.0, allowed) << n;
  }
}

TEST(Softmax, SpecialRows) {
  testing::on_each_target([](const std::string&) {
    EXPECT_EQ(log_sum_exp_of({}), -kInf);
    EXPECT_EQ(log_sum_exp_of(std::vector<float>(37, -kInf)), -kInf);
    for (float p : softmax_of(std::vector<float>(37, -kInf))) EXPECT_EQ(p, 0.0f);
    for (float lp : log_softmax_of(std::vector<float>(37, -kInf))) EXPECT_EQ(lp, -kInf);
    // wherever it is
    for (std::size_t at = 0; at < 37; ++at) {
      std::vector<float> x(37, 1.0f);
      x[at] = kInf;
      EXPECT_EQ(log_sum_exp_of(x), kInf);
      for (float p : softmax_of(x)) EXPECT_TRUE(std::isnan(p));
      x[at] = kNan;
      EXPECT_TRUE(std::isnan(log_sum_exp_of(x)));
      for (float p : softmax_of(x)) EXPECT_TRUE(std::isnan(p));
      for (float lp : log_softmax_of(x)) EXPECT_TRUE(std::isnan(lp));
      x[(at + 1) % 37] = kInf;  // NaN is stronger than +inf
      EXPECT_TRUE(std::isnan(log_sum_exp_of(x)));
      std::vector<float> masked(37, -kInf);
      masked[at] = kNan;  // and than -inf
      EXPECT_TRUE(std::isnan(log_sum_exp_of(masked)));
      for (float p : softmax_of(masked)) EXPECT_TRUE(std::isnan(p));
      masked[at] = -3.5f;  // one that is visible takes all
      EXPECT_EQ(log_sum_exp_of(masked), -3.5f);
      const std::vector<float> p = softmax_of(masked), lp = log_softmax_of(masked);
      for (std::size_t i = 0; i < 37; ++i) {
        EXPECT_EQ(p[i], i == at ? 1.0f : 0.0f);
        EXPECT_EQ(lp[i], i == at ? 0.0f : -kInf);
      }
    }
    const float max = std::numeric_limits<float>::max();
    EXPECT_EQ(softmax_of({max, -max})[0], 1.0f);
    EXPECT_EQ(softmax_of({max, -max})[1], 0.0f);
    EXPECT_EQ(softmax_of({-max, -max})[0], 0.5f);
  });
}

TEST(Softmax, InPlaceAndNothingPastTheEnd) {
  Numbers numbers(15);
  testing::on_each_target([&](const std::string&) {
    for (std::int64_t n = 0; n < 40; ++n) {
      std::vector<float> x = numbers.vector(n, 4);
      const std::vector<float> p = softmax_of(x), lp = log_softmax_of(x);
      std::vector<float> y = x, z = x;
      y.push_back(42), z.push_back(42);
      softmax(y.data(), y.data(), n);
      log_softmax(z.data(), z.data(), n);
      EXPECT_EQ(y.back(), 42);
      EXPECT_EQ(z.back(), 42);
      y.pop_back(), z.pop_back();
      EXPECT_TRUE(same_bits(p, y));
      EXPECT_TRUE(same_bits(lp, z));
    }
  });
}

}  // namespace
}  // namespace regard
