#include "backward.h"

#include <cmath>

#include "attention/backward.h"
#include "attention/forward.h"
#include "attention_case.h"

namespace regard::bench {
namespace {

struct BackwardCase {
  AttentionCase c;
  Tensor<RowSoftmax, 2> softmax;
  Tensor<float, 3> d_out, d_q, d_k, d_v;
  View<float, 3> d_keys, d_values;
  Gradients gradients;

  BackwardCase(std::int64_t D, bool causal)
      : c(4, 4, 2048, 2048, D, causal),
        softmax({c.T, c.H}),
        d_out({c.T, c.H, D}),
        d_q({c.T, c.H, D}),
        d_k({c.S, c.G, D}),
        d_v({c.S, c.G, D}),
        d_keys(d_k.view()),
        d_values(d_v.view()) {
    Noise noise(13);
    noise.fill(d_out.data(), d_out.size());
    forward(c.problem, c.out.view(), softmax.view());
    gradients.d_q = d_q.view();
    gradients.d_k = {&d_keys, 1};
    gradients.d_v = {&d_values, 1};
  }
  void run() { backward(c.problem, c.out.view(), softmax.view(), d_out.view(), gradients); }

  // Largest |gradient - float64| over some rows and keys of one head.
  double error() const {
    const std::int64_t h = c.H - 1, D = c.D;
    const auto dot = [&](const Tensor<float, 3>& a, std::int64_t i, const Tensor<float, 3>& b, std::int64_t j) {
      double sum = 0;
      for (std::int64_t d = 0; d < D; ++d) sum += double{a(i, h, d)} * b(j, h, d);
      return sum;
    };
    const double scale = 1 / std::sqrt(static_cast<double>(D));
    const auto some = [](std::int64_t i) { return i % 400 == 7; };
    Tensor<double, 2> true_q({c.T, D}), true_k({c.S, D}), true_v({c.S, D});
    std::vector<double> p(static_cast<std::size_t>(c.S)), d_p(p);
    for (std::int64_t t = 0; t < c.T; ++t) {
      const std::int64_t end = c.causal ? t + 1 : c.S;
      double max = -INFINITY, sum = 0, delta = 0;
      for (std::int64_t j = 0; j < end; ++j) max = std::max(max, p[j] = dot(c.q, t, c.k, j) * scale);
      for (std::int64_t j = 0; j < end; ++j) sum += p[j] = std::exp(p[j] - max);
      for (std::int64_t j = 0; j < end; ++j) delta += (p[j] /= sum) * (d_p[j] = dot(d_out, t, c.v, j));
      for (std::int64_t j = 0; j < end; ++j) {
        if (!some(t) && !some(j)) continue;
        const double d_s = p[j] * (d_p[j] - delta) * scale;
        for (std::int64_t d = 0; d < D; ++d) {
          true_q(t, d) += d_s * c.k(j, h, d);
          true_k(j, d) += d_s * c.q(t, h, d);
          true_v(j, d) += p[j] * d_out(t, h, d);
        }
      }
    }
    double worst = 0;
    for (std::int64_t i = 0; i < c.T; ++i) {
      if (!some(i)) continue;
      for (std::int64_t d = 0; d < D; ++d) {
        worst = std::max({worst, std::fabs(true_q(i, d) - d_q(i, h, d)), std::fabs(true_k(i, d) - d_k(i, h, d)),
                          std::fabs(true_v(i, d) - d_v(i, h, d))});
      }
    }
    return worst;
  }
};

}  // namespace

void backward_lines(const std::function<void(const Line&)>& each) {
  for (std::int64_t D : {64, 128}) {
    for (bool causal : {false, true}) {
      BackwardCase b(D, causal);
      const Measured m = measure([&] { b.run(); }, 2.5 * b.c.operations(), Yardstick::fma_peak);
      each({"attention backward", b.c.shape(), "GFLOP/s", m.figure, m.peak, m.fraction, b.error()});
    }
  }
}

}  // namespace regard::bench
