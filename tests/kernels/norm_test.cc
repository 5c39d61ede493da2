#include "kernels/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference.h"
#include "support/canonical_sum.h"
#include "support/targets.h"
#include "tensor/error.h"

namespace regard {
namespace {

using testing::canonical_sum;
using testing::Numbers;
using testing::on_each_target;
using testing::same_bits;
using testing::within_law_1;

// Fewer than a vector, odd ends, whole groups of 16, the widths of real models, and both sides of a block of 4096.
const std::int64_t kWidths[] = {1,  2,  3,  4,  5,   7,   8,   9,    15,   16,   17,   24,  31,
                                33, 47, 64, 96, 128, 576, 640, 1000, 3072, 4096, 4097, 8193};

struct Rows {
  std::int64_t rows, channels;
  std::vector<float> x, weight, bias;

  Rows(std::int64_t rows, std::int64_t channels, float scale = 1, float offset = 0) : rows(rows), channels(channels) {
    Numbers numbers(static_cast<std::uint64_t>(rows * 10007 + channels));
    x = numbers.vector(rows * channels, scale);
    for (float& v : x) v += offset;
    weight = numbers.vector(channels);
    bias = numbers.vector(channels);
  }
  View<const float, 2> view() const { return {x.data(), {rows, channels}}; }

  std::vector<float> rms(bool plus_one = false, float eps = 1e-5f) const {
    std::vector<float> y(x.size());
    rms_norm(view(), weight.data(), eps, plus_one, View<float, 2>(y.data(), {rows, channels}));
    return y;
  }
  std::vector<float> layer(bool with_bias = true, float eps = 1e-5f) const {
    std::vector<float> y(x.size());
    layer_norm(view(), weight.data(), with_bias ? bias.data() : nullptr, eps,
               View<float, 2>(y.data(), {rows, channels}));
    return y;
  }
  template <typename Real>
  std::vector<Real> rms_reference(bool plus_one, float eps = 1e-5f) const {
    std::vector<Real> y(x.size());
    reference::rms_norm<Real>(view(), weight.data(), eps, plus_one, View<Real, 2>(y.data(), {rows, channels}));
    return y;
  }
  template <typename Real>
  std::vector<Real> layer_reference(bool with_bias, float eps = 1e-5f) const {
    std::vector<Real> y(x.size());
    reference::layer_norm<Real>(view(), weight.data(), with_bias ? bias.data() : nullptr, eps,
                                View<Real, 2>(y.data(), {rows, channels}));
    return y;
  }
};

TEST(Norm, Law1ForEveryWidth) {
  for (std::int64_t channels : kWidths) {
    // Many rows where rows are short: the largest error of a handful of numbers says nothing.
    const std::int64_t rows = std::max<std::int64_t>(8, 4096 / channels);
    for (auto [scale, offset] : {std::pair{1.0f, 0.0f}, {1e-3f, 0.0f}, {300.0f, 0.0f}, {1.0f, 50.0f}}) {
      SCOPED_TRACE(fmt::format("{} channels, scale {}, offset {}", channels, scale, offset));
      const Rows r(rows, channels, scale, offset);
      for (bool flag : {false, true}) {
        EXPECT_TRUE(within_law_1(r.rms(flag), r.rms_reference<float>(flag), r.rms_reference<double>(flag)));
        EXPECT_TRUE(within_law_1(r.layer(flag), r.layer_reference<float>(flag), r.layer_reference<double>(flag)));
      }
    }
  }
}

TEST(Norm, SameBitsOnEveryTargetAndThreadCount) {
  for (std::int64_t channels : {1, 7, 16, 33, 576, 4097}) {
    SCOPED_TRACE(channels);
    const Rows r(70000 / channels, channels);  // three pieces
    testing::expect_same_bits_everywhere([&] {
      std::vector<float> all = r.rms();
      for (const std::vector<float>& more : {r.rms(true), r.layer(true), r.layer(false)})
        all.insert(all.end(), more.begin(), more.end());
      return all;
    });
  }
}

TEST(Norm, SumsInTheCanonicalOrder) {
  for (std::int64_t channels : kWidths) {
    SCOPED_TRACE(channels);
    const Rows r(3, channels);
    std::vector<float> rms(r.x.size()), layer(r.x.size());
    for (std::int64_t row = 0; row < r.rows; ++row) {
      const float* x = &r.x[row * channels];
      const float n = static_cast<float>(channels);
      const float squares = canonical_sum(channels, [&](float s, std::int64_t c) { return std::fma(x[c], x[c], s); });
      const float size = std::sqrt(squares / n + 1e-5f);
      const float mean = canonical_sum(channels, [&](float s, std::int64_t c) { return s + x[c]; }) / n;
      const float spread =
          canonical_sum(channels, [&](float s, std::int64_t c) { return std::fma(x[c] - mean, x[c] - mean, s); });
      const float deviation = std::sqrt(spread / n + 1e-5f);
      for (std::int64_t c = 0; c < channels; ++c) {
        rms[row * channels + c] = x[c] / size * r.weight[c];
        layer[row * channels + c] = std::fma((x[c] - mean) / deviation, r.weight[c], r.bias[c]);
      }
    }
    EXPECT_TRUE(same_bits(rms, r.rms()));
    EXPECT_TRUE(same_bits(layer, r.layer()));
  }
}

TEST(Norm, ARowIsTheSameAloneInABatchStridedAndInPlace) {
  const Rows r(40, 1000);
  const std::vector<float> rms = r.rms(), layer = r.layer();
  const std::int64_t stride = 1013;
  std::vector<float> wide(static_cast<std::size_t>(r.rows * stride), 7.0f);
  for (const bool is_rms : {true, false}) {
    const std::vector<float>& expected = is_rms ? rms : layer;
    const auto norm = [&](View<const float, 2> x, View<float, 2> y) {
      if (is_rms) rms_norm(x, r.weight.data(), 1e-5f, false, y);
      if (!is_rms) layer_norm(x, r.weight.data(), r.bias.data(), 1e-5f, y);
    };
    for (std::int64_t row = 0; row < r.rows; ++row) {
      std::vector<float> y(1000);
      norm(r.view().slice(row, row + 1), View<float, 2>(y.data(), {1, 1000}));
      EXPECT_TRUE(same_bits(std::span<const float>(&expected[row * 1000], 1000), std::span<const float>(y)));
    }
    std::fill(wide.begin(), wide.end(), 7.0f);
    const View<float, 2> strided(wide.data(), {r.rows, 1000}, {stride, 1});
    for (std::int64_t row = 0; row < r.rows; ++row) std::copy_n(&r.x[row * 1000], 1000, &strided(row, 0));
    norm(strided, strided);
    for (std::int64_t row = 0; row < r.rows; ++row) {
      EXPECT_TRUE(same_bits(std::span<const float>(&expected[row * 1000], 1000),
                            std::span<const float>(&strided(row, 0), 1000)));
      for (std::int64_t c = 1000; c < stride; ++c) EXPECT_EQ(wide[row * stride + c], 7.0f) << "written past a row";
    }
  }
}

TEST(Norm, FaultsOfARowStayInIt) {
  Rows r(3, 100);
  const std::vector<float> good_rms = r.rms(), good_layer = r.layer();
  r.x[137] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rms = r.rms(), layer = r.layer();
  for (std::size_t i = 0; i < r.x.size(); ++i) {
    const bool spoilt = i / 100 == 1;
    EXPECT_EQ(std::isnan(rms[i]), spoilt);
    EXPECT_EQ(std::isnan(layer[i]), spoilt);
    if (!spoilt) {
      EXPECT_EQ(rms[i], good_rms[i]);
      EXPECT_EQ(layer[i], good_layer[i]);
    }
  }
}

// Squares that overflow, of numbers that do not: with a power of two as its scale, to the bit the answer at scale 1.
TEST(Norm, HugeRowsAreNormalisedLikeAnyOther) {
  for (std::int64_t channels : {2, 7, 576, 4097}) {
    for (float scale : {0x1p66f, 0x1p90f, 0x1p115f}) {
      SCOPED_TRACE(fmt::format("{} channels, scale {}", channels, scale));
      const Rows huge(8, channels, scale), plain(8, channels);
      on_each_target([&](const std::string&) {
        EXPECT_TRUE(same_bits(huge.rms(), plain.rms(false, 0)));
        EXPECT_TRUE(same_bits(huge.rms(true), plain.rms(true, 0)));
        EXPECT_TRUE(same_bits(huge.layer(), plain.layer(true, 0)));
      });
    }
  }
}

TEST(Norm, ZeroRowsGiveZeroAndTheBias) {
  Rows r(2, 37);
  std::fill(r.x.begin(), r.x.end(), 0.0f);
  for (float y : r.rms()) EXPECT_EQ(y, 0.0f);
  const std::vector<float> layer = r.layer();
  for (std::size_t i = 0; i < layer.size(); ++i) EXPECT_EQ(layer[i], r.bias[i % 37]);
}

TEST(Norm, EpsilonIsInsideTheRoot) {
  const float x = 0, w = 1;
  float y = -1;
  rms_norm(View<const float, 2>(&x, {1, 1}), &w, 4.0f, false, View<float, 2>(&y, {1, 1}));
  EXPECT_EQ(y, 0.0f);
  const float two = 2;
  rms_norm(View<const float, 2>(&two, {1, 1}), &w, 12.0f, false, View<float, 2>(&y, {1, 1}));
  EXPECT_EQ(y, 0.5f);  // 2 / sqrt(4 + 12)
  rms_norm(View<const float, 2>(&two, {1, 1}), &w, 12.0f, true, View<float, 2>(&y, {1, 1}));
  EXPECT_EQ(y, 1.0f);  // times 1 + w
}

TEST(Norm, NoRowsAndNoChannels) {
  const float w = 1;
  float untouched = 3;
  rms_norm(View<const float, 2>(&untouched, {0, 1}), &w, 1, false, View<float, 2>(&untouched, {0, 1}));
  layer_norm(View<const float, 2>(&untouched, {1, 0}), &w, nullptr, 1, View<float, 2>(&untouched, {1, 0}));
  EXPECT_EQ(untouched, 3);
}

template <typename Call>
ErrorCode code_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_FALSE(e.message.empty());
    return e.code;
  }
  ADD_FAILURE() << "nothing thrown";
  return ErrorCode::interrupted;
}

TEST(Norm, RefusesWhatItCannotDo) {
  std::vector<float> m(24), w(6);
  const View<float, 2> y(m.data(), {4, 6});
  const View<const float, 2> other_shape(m.data(), {6, 4}), transposed(m.data(), {4, 6}, {1, 4});
  EXPECT_EQ(code_of([&] { rms_norm(other_shape, w.data(), 1, false, y); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { rms_norm(transposed, w.data(), 1, false, y); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { rms_norm(y, nullptr, 1, false, y); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { layer_norm(other_shape, w.data(), nullptr, 1, y); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { layer_norm(transposed, w.data(), nullptr, 1, y); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { layer_norm(y, nullptr, nullptr, 1, y); }), ErrorCode::bad_input);
}

}  // namespace
}  // namespace regard
