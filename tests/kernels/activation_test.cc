#include "kernels/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference.h"
#include "support/special_floats.h"
#include "support/targets.h"
#include "tensor/error.h"

namespace regard {
namespace {

using testing::Numbers;
using testing::same_bits;
using testing::within_law_1;

using testing::kInf;
using testing::kNan;
constexpr Activation kAll[] = {Activation::silu, Activation::gelu_erf, Activation::gelu_tanh, Activation::relu};
const char* name(Activation f) {
  const char* names[] = {"silu", "gelu_erf", "gelu_tanh", "relu", "clamped_swiglu"};
  return names[static_cast<int>(f)];
}

std::vector<float> run(Activation f, const std::vector<float>& x, std::int64_t rows = 1) {
  const std::int64_t channels = static_cast<std::int64_t>(x.size()) / rows;
  std::vector<float> y(x.size());
  activate(f, View<const float, 2>(x.data(), {rows, channels}), View<float, 2>(y.data(), {rows, channels}));
  return y;
}
std::vector<float> run_gated(Activation f, const std::vector<float>& gate, const std::vector<float>& up,
                             std::int64_t rows = 1) {
  const std::int64_t channels = static_cast<std::int64_t>(gate.size()) / rows;
  std::vector<float> y(gate.size());
  activate_gated(f, View<const float, 2>(gate.data(), {rows, channels}),
                 View<const float, 2>(up.data(), {rows, channels}), View<float, 2>(y.data(), {rows, channels}));
  return y;
}
template <typename Real>
std::vector<Real> truth(Activation f, const std::vector<float>& x, const std::vector<float>& up = {}) {
  const std::int64_t n = static_cast<std::int64_t>(x.size());
  std::vector<Real> y(x.size());
  reference::activate<Real>(f, View<const float, 2>(x.data(), {1, n}),
                            View<const float, 2>(up.empty() ? nullptr : up.data(), {1, n}),
                            View<Real, 2>(y.data(), {1, n}));
  return y;
}

TEST(Activation, Law1RangeByRange) {
  Numbers numbers(3);
  // Range by range, so that large values do not hide errors of small ones. In the far tails a plain evaluation of a
  // gelu is 0 or a rounding of 1 + erf, of absolute size 6e-8 |x|, and the fast one may not be worse.
  for (auto [lo, hi] : {std::pair{-1e-3f, 1e-3f},
                        {-1.0f, 1.0f},
                        {1.0f, 4.0f},
                        {-4.0f, -1.0f},
                        {-10.0f, -4.0f},
                        {4.0f, 20.0f},
                        {-87.0f, -10.0f}}) {
    std::vector<float> x(20000);
    for (float& v : x) v = lo + (hi - lo) * 0.5f * (1 + numbers.next());
    const std::vector<float> up = numbers.vector(static_cast<std::int64_t>(x.size()), 3);
    for (Activation f : kAll) {
      // Below -10 a gelu is under 1e-22, less than the rounding of 1 + erf in the float64 formula.
      if (hi <= -10 && f != Activation::silu && f != Activation::relu) continue;
      SCOPED_TRACE(fmt::format("{} in [{}, {}]", name(f), lo, hi));
      EXPECT_TRUE(within_law_1(run(f, x), truth<float>(f, x), truth<double>(f, x)));
      EXPECT_TRUE(within_law_1(run_gated(f, x, up), truth<float>(f, x, up), truth<double>(f, x, up)));
    }
  }
}

// Both operands are clamped, so values on either side of 7 and -7 matter; it has no form without a gate.
TEST(Activation, ClampedSwiglu) {
  Numbers numbers(5);
  constexpr Activation f = Activation::clamped_swiglu;
  for (const float size : {1.0f, 12.0f}) {
    std::vector<float> gate = numbers.vector(20000, size), up = numbers.vector(20000, size);
    for (const auto& [i, special] : {std::pair{0, kInf}, {1, -kInf}, {2, 7.0f}, {3, -7.0f}}) {
      gate[i] = up[i + 4] = special;
      up[i] = gate[i + 4] = 1;
    }
    // In the far tail a plain evaluation is as good as it gets; -inf has the sigmoid's limit, not inf * 0.
    gate[1] = -80;
    EXPECT_TRUE(within_law_1(run_gated(f, gate, up), truth<float>(f, gate, up), truth<double>(f, gate, up)));
    EXPECT_TRUE(same_bits(run_gated(f, gate, up), run_gated(f, gate, up, 100)));
  }
  EXPECT_TRUE(std::isnan(run_gated(f, {kNan}, {1})[0]));
  EXPECT_TRUE(std::isnan(run_gated(f, {1}, {kNan})[0]));
  EXPECT_THROW(run(f, {1}), Error);
}

TEST(Activation, SpecialValuesAndTails) {
  testing::on_each_target([](const std::string&) {
    for (Activation f : kAll) {
      SCOPED_TRACE(name(f));
      const float max = std::numeric_limits<float>::max();
      const std::vector<float> y = run(f, {0.0f, -0.0f, kInf, -kInf, kNan, max, -max, 100.0f, -200.0f});
      EXPECT_EQ(y[0], 0.0f);
      EXPECT_EQ(y[1], 0.0f);
      EXPECT_EQ(y[2], kInf);
      EXPECT_EQ(y[3], 0.0f) << "the limit, not inf * 0";
      EXPECT_TRUE(std::isnan(y[4]));
      EXPECT_EQ(y[5], max);
      EXPECT_EQ(y[6], 0.0f);
      EXPECT_EQ(y[7], 100.0f);
      EXPECT_EQ(y[8], 0.0f);
    }
  });
}

TEST(Activation, SameBitsOnEveryTargetThreadCountAndBatch) {
  Numbers numbers(4);
  for (std::int64_t channels : {1, 3, 8, 17, 100, 1536}) {
    SCOPED_TRACE(channels);
    const std::int64_t rows = 70000 / channels;  // three pieces
    std::vector<float> x = numbers.vector(rows * channels, 12);
    const std::vector<float> up = numbers.vector(rows * channels, 2);
    x[0] = kNan, x.back() = -kInf;
    testing::expect_same_bits_everywhere([&] {
      std::vector<float> all;
      for (Activation f : kAll) {
        const std::vector<float> plain = run(f, x, rows), gated = run_gated(f, x, up, rows);
        all.insert(all.end(), plain.begin(), plain.end());
        all.insert(all.end(), gated.begin(), gated.end());
      }
      return all;
    });
    for (Activation f : kAll) EXPECT_TRUE(same_bits(run(f, x, rows), run(f, x, 1))) << "rows cut otherwise";
  }
}

TEST(Activation, InPlaceOverEitherInputAndWithinStrides) {
  Numbers numbers(5);
  const std::int64_t rows = 5, channels = 37, stride = 41;
  for (Activation f : kAll) {
    const std::vector<float> gate = numbers.vector(rows * stride, 5), up = numbers.vector(rows * stride, 5);
    const View<const float, 2> gate_view(gate.data(), {rows, channels}, {stride, 1});
    const View<const float, 2> up_view(up.data(), {rows, channels}, {stride, 1});
    std::vector<float> expected(static_cast<std::size_t>(rows * channels));
    activate_gated(f, gate_view, up_view, View<float, 2>(expected.data(), {rows, channels}));
    for (bool over_gate : {true, false}) {
      std::vector<float> y = over_gate ? gate : up;
      const View<float, 2> y_view(y.data(), {rows, channels}, {stride, 1});
      activate_gated(f, over_gate ? View<const float, 2>(y_view) : gate_view,
                     over_gate ? up_view : View<const float, 2>(y_view), y_view);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < stride; ++c) {
          const float kept = (over_gate ? gate : up)[static_cast<std::size_t>(r * stride + c)];
          const float want = c < channels ? expected[static_cast<std::size_t>(r * channels + c)] : kept;
          ASSERT_EQ(y[static_cast<std::size_t>(r * stride + c)], want) << r << ", " << c;
        }
      }
    }
  }
}

TEST(Activation, GatedIsTheProductToTheBit) {
  Numbers numbers(6);
  const std::vector<float> gate = numbers.vector(1000, 8), up = numbers.vector(1000, 8);
  for (Activation f : kAll) {
    std::vector<float> expected = run(f, gate);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= up[i];
    EXPECT_TRUE(same_bits(expected, run_gated(f, gate, up)));
  }
}

TEST(Activation, AddBiasAndScale) {
  Numbers numbers(7);
  for (std::int64_t channels : {1, 5, 8, 33, 2048}) {
    const std::int64_t rows = channels == 2048 ? 700 : 9;  // 700 rows: several pieces
    const std::vector<float> x = numbers.vector(rows * channels), y0 = numbers.vector(rows * channels);
    const std::vector<float> bias = numbers.vector(channels);
    std::vector<float> expected = y0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = (expected[i] + x[i] + bias[i % static_cast<std::size_t>(channels)]) * 0.7f;
    testing::on_each_target([&](const std::string&) {
      testing::on_thread_counts([&](int) {
        std::vector<float> y = y0;
        const View<float, 2> view(y.data(), {rows, channels});
        add(View<const float, 2>(x.data(), {rows, channels}), view);
        add_bias(bias.data(), view);
        scale(0.7f, view);
        EXPECT_TRUE(same_bits(expected, y));
      });
    });
  }
}

template <typename Call>
void expect_refused(Call&& call) {
  try {
    call();
    ADD_FAILURE() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::bad_input);
  }
}

TEST(Activation, RefusesShapesThatDoNotFit) {
  std::vector<float> m(24);
  const View<float, 2> y(m.data(), {4, 6}), turned(m.data(), {4, 6}, {1, 4});
  const View<const float, 2> other(m.data(), {4, 5});
  expect_refused([&] { activate(Activation::silu, other, y); });
  expect_refused([&] { activate(Activation::silu, y, turned); });
  expect_refused([&] { activate_gated(Activation::silu, y, other, y); });
  expect_refused([&] { activate_gated(Activation::silu, other, y, y); });
  expect_refused([&] { add(other, y); });
  expect_refused([&] { add(turned, y); });
  expect_refused([&] { add_bias(nullptr, y); });
  expect_refused([&] { add_bias(m.data(), turned); });
  expect_refused([&] { scale(2, turned); });
}

}  // namespace
}  // namespace regard
