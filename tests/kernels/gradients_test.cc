#include "kernels/gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference.h"
#include "kernels/reference_gradients.h"
#include "kernels/rotary.h"
#include "support/errors.h"
#include "support/targets.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::Numbers;
using testing::on_each_target;
using testing::same_bits;
using testing::within_law_1;

constexpr Activation kActivations[] = {Activation::silu, Activation::gelu_erf, Activation::gelu_tanh, Activation::relu};

View<const float, 2> rows_of(const std::vector<float>& x, std::int64_t channels) {
  return {x.data(), {std::ssize(x) / channels, channels}};
}
View<float, 2> rows_of(std::vector<float>& x, std::int64_t channels) {
  return {x.data(), {std::ssize(x) / channels, channels}};
}

// Central differences of f at steps h and h / 2, whose distance is three times the error of the better one, as long as
// h is small; beside it what double rounds away.
struct Difference {
  double value, error;
};
template <typename F>
Difference difference(float x, float h, F&& f) {
  const double wide = (f(x + h) - f(x - h)) / (2.0 * h), narrow = (f(x + h / 2) - f(x - h / 2)) / double{h};
  return {narrow, std::fabs(wide - narrow) + 1e-13 * (1 + std::fabs(f(x))) / h};
}

TEST(Gradients, TheReferenceIsTheSlopeOfTheFormula) {
  Numbers numbers(1);
  for (const Activation f : kActivations)
    for (int i = 0; i < 200; ++i) {
      float x = 6 * static_cast<float>(numbers.next());
      if (std::fabs(x) < 0x1p-8f) x = 0.5f;    // away from the corner of relu
      x = std::round(x * 0x1p12f) * 0x1p-12f;  // x + h is exact
      const Difference d = difference(x, 0x1p-9f, [&](float at) { return reference::activation<double>(f, at); });
      EXPECT_NEAR(reference::slope<double>(f, x), d.value, d.error) << x;
    }
  constexpr std::int64_t C = 7;
  std::vector<float> x = numbers.vector(C), w = numbers.vector(C), b = numbers.vector(C), dy = numbers.vector(C);
  for (float& v : x) v = std::round(v * 0x1p10f) * 0x1p-10f;
  for (float& v : w) v = std::round(v * 0x1p10f) * 0x1p-10f;
  for (const bool centred : {false, true})
    for (const bool plus_one : {false, true}) {
      if (centred && plus_one) continue;
      std::vector<double> dx(C), dw(C), db(C);
      reference::norm_backward<double>(centred, rows_of(x, C), w.data(), 0.25f, plus_one, rows_of(dy, C),
                                       View<double, 2>(dx.data(), {1, C}), dw.data(), db.data());
      const auto loss = [&] {
        std::vector<double> y(C);
        const View<double, 2> out(y.data(), {1, C});
        if (centred)
          reference::layer_norm<double>(rows_of(x, C), w.data(), b.data(), 0.25f, out);
        else
          reference::rms_norm<double>(rows_of(x, C), w.data(), 0.25f, plus_one, out);
        double sum = 0;
        for (std::int64_t c = 0; c < C; ++c) sum += y[c] * dy[c];
        return sum;
      };
      const auto expect = [&](float& parameter, double gradient) {
        const float was = parameter;
        const Difference d = difference(was, 0x1p-9f, [&](float at) {
          parameter = at;
          return loss();
        });
        parameter = was;
        EXPECT_NEAR(gradient, d.value, d.error);
      };
      for (std::int64_t c = 0; c < C; ++c) {
        expect(x[c], dx[c]);
        expect(w[c], dw[c]);
        EXPECT_EQ(db[c], double{dy[c]});
      }
    }
}

struct NormGradients {
  std::vector<float> dx, dweight, dbias;
  std::vector<float> all() const {
    std::vector<float> v = dx;
    v.insert(v.end(), dweight.begin(), dweight.end());
    v.insert(v.end(), dbias.begin(), dbias.end());
    return v;
  }
};

NormGradients norm_gradients(bool centred, const std::vector<float>& x, const std::vector<float>& w, bool plus_one,
                             const std::vector<float>& dy, bool in_place = false) {
  const std::int64_t C = std::ssize(w);
  NormGradients g{in_place ? dy : std::vector<float>(x.size()), std::vector<float>(w.size()),
                  std::vector<float>(w.size())};
  const auto from = in_place ? View<const float, 2>(rows_of(g.dx, C)) : rows_of(dy, C);
  if (centred)
    layer_norm_backward(rows_of(x, C), w.data(), 1e-5f, from, rows_of(g.dx, C), g.dweight.data(), g.dbias.data());
  else
    rms_norm_backward(rows_of(x, C), w.data(), 1e-5f, plus_one, from, rows_of(g.dx, C), g.dweight.data());
  return g;
}

TEST(Gradients, OfNormsKeepLaw1) {
  for (const std::int64_t C : {1, 3, 8, 15, 16, 17, 64, 576, 1000, 4097}) {
    const std::int64_t rows = std::max<std::int64_t>(8, 4096 / C);
    Numbers numbers(static_cast<std::uint64_t>(C));
    const std::vector<float> x = numbers.vector(rows * C), w = numbers.vector(C), dy = numbers.vector(rows * C);
    for (const bool centred : {false, true}) {
      // One channel takes away its own mean: nothing is left but rounding, and a plain evaluation is exactly 0.
      if (centred && C == 1) continue;
      for (const bool plus_one : {false, true}) {
        if (centred && plus_one) continue;
        SCOPED_TRACE(fmt::format("{} channels, centred {}, plus one {}", C, centred, plus_one));
        const auto evaluate = [&]<typename Real>(Real) {
          struct {
            std::vector<Real> dx, dweight, dbias;
          } g{std::vector<Real>(x.size()), std::vector<Real>(w.size()), std::vector<Real>(w.size())};
          reference::norm_backward<Real>(centred, rows_of(x, C), w.data(), 1e-5f, plus_one, rows_of(dy, C),
                                         View<Real, 2>(g.dx.data(), {rows, C}), g.dweight.data(), g.dbias.data());
          return g;
        };
        const auto truth = evaluate(double{});
        const auto plain = evaluate(float{});
        const NormGradients g = norm_gradients(centred, x, w, plus_one, dy);
        EXPECT_TRUE(within_law_1(g.dx, plain.dx, truth.dx));
        EXPECT_TRUE(within_law_1(g.dweight, plain.dweight, truth.dweight));
        if (centred) {
          EXPECT_TRUE(within_law_1(g.dbias, plain.dbias, truth.dbias));
        }
        EXPECT_TRUE(same_bits(g.all(), norm_gradients(centred, x, w, plus_one, dy, true).all())) << "in place";
      }
    }
  }
}

TEST(Gradients, OfActivationsKeepLaw1) {
  Numbers numbers(5);
  constexpr std::int64_t F = 1003, R = 9;
  std::vector<float> x = numbers.vector(R * F, 8), up = numbers.vector(R * F), dy = numbers.vector(R * F);
  for (const Activation f : kActivations) {
    SCOPED_TRACE(static_cast<int>(f));
    const auto evaluate = [&]<typename Real>(Real) {
      struct {
        std::vector<Real> dx, dgate, dup;
      } g;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Real s = reference::slope<Real>(f, x[i]);
        g.dx.push_back(s * dy[i]);
        g.dgate.push_back(s * dy[i] * up[i]);
        g.dup.push_back(reference::activation<Real>(f, x[i]) * dy[i]);
      }
      return g;
    };
    const auto truth = evaluate(double{});
    const auto plain = evaluate(float{});
    std::vector<float> dx(x.size()), dgate(x.size()), dup(x.size());
    activate_backward(f, rows_of(x, F), rows_of(dy, F), rows_of(dx, F));
    activate_gated_backward(f, rows_of(x, F), rows_of(up, F), rows_of(dy, F), rows_of(dgate, F), rows_of(dup, F));
    EXPECT_TRUE(within_law_1(dx, plain.dx, truth.dx));
    EXPECT_TRUE(within_law_1(dgate, plain.dgate, truth.dgate));
    EXPECT_TRUE(within_law_1(dup, plain.dup, truth.dup));
    std::vector<float> gate = x, other = dy;  // in place
    activate_gated_backward(f, rows_of(gate, F), rows_of(up, F), rows_of(other, F), rows_of(gate, F),
                            rows_of(other, F));
    EXPECT_TRUE(same_bits(gate, dgate));
    EXPECT_TRUE(same_bits(other, dup));
  }
}

TEST(Gradients, OfActivationsStayFiniteFarOut) {
  const std::vector<float> x = {-3e38f, -1e4f, -100, -88, -0.0f, 0, 88, 100, 1e4f};
  const std::vector<float> dy(x.size(), 1.0f);
  for (const Activation f : kActivations) {
    std::vector<float> dx(x.size());
    activate_backward(f, rows_of(x, std::ssize(x)), rows_of(dy, std::ssize(x)), rows_of(dx, std::ssize(x)));
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(dx[i], 0, 1e-30) << static_cast<int>(f) << " at " << x[i];
    for (std::size_t i = 6; i < x.size(); ++i) EXPECT_EQ(dx[i], 1) << static_cast<int>(f) << " at " << x[i];
  }
}

TEST(Gradients, CrossEntropy) {
  constexpr std::int64_t V = 301, R = 12;
  Numbers numbers(7);
  std::vector<float> logits = numbers.vector(R * V, 4);
  logits[3 * V + 9] = 60;  // a row that is sure, and right
  std::vector<std::int32_t> targets;
  for (std::int64_t r = 0; r < R; ++r) targets.push_back(static_cast<std::int32_t>(r == 5 ? -1 : r == 3 ? 9 : 20 * r));
  std::vector<float> losses(R), d(logits.size());
  cross_entropy(rows_of(logits, V), targets, 0.25f, losses, rows_of(d, V));
  const auto evaluate = [&]<typename Real>(Real) {
    struct {
      std::vector<Real> losses, d;
    } all{std::vector<Real>(R), std::vector<Real>(logits.size())};
    std::vector<Real> p(V), lp(V);
    for (std::int64_t r = 0; r < R; ++r) {
      if (targets[r] < 0) continue;
      const std::span<const float> row(&logits[r * V], V);
      reference::log_softmax<Real>(row, lp);
      reference::softmax<Real>(row, p);
      all.losses[r] = -lp[targets[r]];
      for (std::int64_t c = 0; c < V; ++c) all.d[r * V + c] = Real(0.25) * (p[c] - (c == targets[r] ? 1 : 0));
    }
    return all;
  };
  const auto truth = evaluate(double{});
  const auto plain = evaluate(float{});
  EXPECT_TRUE(within_law_1(losses, plain.losses, truth.losses));
  EXPECT_TRUE(within_law_1(d, plain.d, truth.d));
  double sure = 0;  // p - 1 is not 0 where p rounds to 1
  for (std::int64_t c = 0; c < V; ++c)
    if (c != 9) sure += std::exp(double{logits[3 * V + c]} - 60);
  EXPECT_NEAR(d[3 * V + 9] / (-0.25 * sure), 1, 1e-6);
  for (std::int64_t c = 0; c < V; ++c) EXPECT_EQ(d[5 * V + c], 0);
  expect_error(ErrorCode::bad_input, {"301"}, [&] {
    targets[0] = V;
    cross_entropy(rows_of(logits, V), targets, 1, losses, rows_of(d, V));
  });
  expect_error(ErrorCode::bad_input, {"targets"},
               [&] { cross_entropy(rows_of(logits, V), std::span(targets).first(2), 1, losses, rows_of(d, V)); });
}

// <rotate(x), y> = <x, rotate_gradient(y)>: what a transpose is, for every pairing, with part of a head turned.
TEST(Gradients, OfRotaryPositionsIsTheTranspose) {
  for (const RotaryPairs pairs : {RotaryPairs::half, RotaryPairs::interleaved}) {
    RotaryConfig config;
    config.dim = 10;
    config.pairs = pairs;
    RotaryTable table(config, 100);
    Numbers numbers(11);
    const std::vector<float> x = numbers.vector(5 * 2 * 16), y = numbers.vector(5 * 2 * 16);
    const std::int64_t positions[] = {0, 1, 7, 99, RotaryTable::kTableRows + 3};
    std::vector<float> turned = x, back = y, round = x;
    const auto view = [](std::vector<float>& v) { return View<float, 3>(v.data(), {5, 2, 16}); };
    table.rotate(view(turned), positions);
    table.rotate_gradient(view(back), positions);
    double forwards = 0, backwards = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      forwards += double{turned[i]} * y[i];
      backwards += double{x[i]} * back[i];
    }
    const double rounding = 0x1p-23 * static_cast<double>(x.size());
    EXPECT_NEAR(forwards, backwards, rounding);
    table.rotate(view(round), positions);
    table.rotate_gradient(view(round), positions);
    EXPECT_LT(testing::max_error(round, x), 4 * 0x1p-23);
  }
}

TEST(Gradients, SameBitsOnEveryTargetAndThreadCount) {
  constexpr std::int64_t C = 205, R = 700;  // several blocks of rows, several tasks of columns
  Numbers numbers(13);
  const std::vector<float> x = numbers.vector(R * C), w = numbers.vector(C), dy = numbers.vector(R * C);
  testing::expect_same_bits_everywhere([&] {
    std::vector<float> all = norm_gradients(false, x, w, true, dy).all();
    const std::vector<float> layer = norm_gradients(true, x, w, false, dy).all();
    all.insert(all.end(), layer.begin(), layer.end());
    std::vector<float> dx(x.size()), sums(C), turned(x.size());
    for (const Activation f : kActivations) {
      activate_backward(f, rows_of(x, C), rows_of(dy, C), rows_of(dx, C));
      all.insert(all.end(), dx.begin(), dx.end());
    }
    add_column_sums(rows_of(dy, C), sums.data());
    all.insert(all.end(), sums.begin(), sums.end());
    turn(rows_of(x, C), rows_of(turned, R));
    all.insert(all.end(), turned.begin(), turned.end());
    return all;
  });
}

TEST(Gradients, TurnAndSumsAreExact) {
  for (const auto& [R, C] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 50}, {50, 3}, {33, 47}, {0, 4}}) {
    std::vector<float> x(static_cast<std::size_t>(R * C)), y(x.size(), -1), sums(static_cast<std::size_t>(C), 2);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    const View<const float, 2> from(x.data(), {R, C});
    turn(from, View<float, 2>(y.data(), {C, R}));
    for (std::int64_t r = 0; r < R; ++r)
      for (std::int64_t c = 0; c < C; ++c) EXPECT_EQ(y[c * R + r], x[r * C + c]);
    add_column_sums(from, sums.data());
    for (std::int64_t c = 0; c < C; ++c) {
      float expected = 2;
      for (std::int64_t r = 0; r < R; ++r) expected += x[r * C + c];
      EXPECT_EQ(sums[c], expected);
    }
  }
}

TEST(Gradients, AFaultyRowStaysInItsRow) {
  constexpr std::int64_t C = 20;
  Numbers numbers(17);
  std::vector<float> x = numbers.vector(3 * C), w = numbers.vector(C);
  const std::vector<float> dy = numbers.vector(3 * C), good = norm_gradients(true, x, w, false, dy).dx;
  x[C + 3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> dx = norm_gradients(true, x, w, false, dy).dx;
  for (std::int64_t i = 0; i < 3 * C; ++i) {
    if (i / C == 1)
      EXPECT_TRUE(std::isnan(dx[i]));
    else
      EXPECT_EQ(dx[i], good[i]);
  }
}

TEST(Gradients, RefuseWhatTheyCannotDo) {
  std::vector<float> x(6), y(8), w(3);
  expect_error(ErrorCode::bad_input, {"rms_norm_backward", "[2, 3]", "[2, 4]"},
               [&] { rms_norm_backward(rows_of(x, 3), w.data(), 1, false, rows_of(x, 3), rows_of(y, 4), nullptr); });
  expect_error(ErrorCode::bad_input, {"no weight"},
               [&] { layer_norm_backward(rows_of(x, 3), nullptr, 1, rows_of(x, 3), rows_of(x, 3), nullptr, nullptr); });
  expect_error(ErrorCode::bad_input, {"clamped_swiglu"},
               [&] { activate_backward(Activation::clamped_swiglu, rows_of(x, 3), rows_of(x, 3), rows_of(x, 3)); });
  expect_error(ErrorCode::bad_input, {"turn"}, [&] { turn(rows_of(x, 3), rows_of(x, 3)); });
}

// Rows whose squares overflow, as forwards: their gradient is that of the row at scale 1, divided by the scale.
TEST(Gradients, HugeRowsOfNorms) {
  constexpr std::int64_t C = 37;
  constexpr float kScale = 0x1p70f;
  Numbers numbers(5);
  const std::vector<float> x = numbers.vector(3 * C), dy = numbers.vector(3 * C), w = numbers.vector(C);
  std::vector<float> huge = x;
  for (float& v : huge) v *= kScale;
  on_each_target([&](const std::string&) {
    for (const bool centred : {false, true}) {
      const auto gradient = [&](const std::vector<float>& rows, float back) {
        std::vector<float> dx(rows.size()), dw(C), db(C);
        if (centred)
          layer_norm_backward(rows_of(rows, C), w.data(), 0, rows_of(dy, C), rows_of(dx, C), dw.data(), db.data());
        else
          rms_norm_backward(rows_of(rows, C), w.data(), 0, false, rows_of(dy, C), rows_of(dx, C), dw.data());
        for (float& v : dx) v *= back;
        dx.insert(dx.end(), dw.begin(), dw.end());
        return dx;
      };
      EXPECT_TRUE(same_bits(gradient(huge, kScale), gradient(x, 1))) << centred;
    }
  });
}

}  // namespace
}  // namespace regard
