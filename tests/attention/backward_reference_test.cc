// The float64 gradients against central differences of the float64 forward pass.

#include <gtest/gtest.h>

#include "attention/backward_support.h"

namespace regard::test {
namespace {

double loss(const Problem& problem, const Incoming& in) {
  const ReferenceAttention forward = reference_attention(problem);
  double sum = 0;
  for (std::int64_t i = 0; i < forward.out.size(); ++i) sum += forward.out.data()[i] * in.d_out.data()[i];
  for (std::int64_t i = 0; i < forward.log_sum_exp.size(); ++i) {
    if (std::isfinite(forward.log_sum_exp.data()[i])) sum += forward.log_sum_exp.data()[i] * in.d_log_sum_exp.data()[i];
  }
  return sum;
}

// The derivative of the loss by a number that set() changes. Differences over h and h / 2 are off by c h^2 and c h^2 /
// 4 (Richardson): what they make of it together is off by far less than they differ, which is the tolerance, beside the
// rounding of two losses in float64.
void expect_derivative(const Problem& problem, const Incoming& in, float value, const std::function<void(float)>& set,
                       double gradient) {
  double slope[2], largest = 0;
  for (int i = 0; i < 2; ++i) {
    const float h = i == 0 ? 0x1p-7f : 0x1p-8f, up = value + h, down = value - h;
    set(up);
    const double above = loss(problem, in);
    set(down);
    const double below = loss(problem, in);
    slope[i] = (above - below) / (double{up} - double{down});
    largest = std::max({largest, std::abs(above), std::abs(below)});
  }
  set(value);
  const double derivative = (4 * slope[1] - slope[0]) / 3;
  EXPECT_NEAR(gradient, derivative, std::abs(slope[1] - slope[0]) + (largest + 1) * 0x1p-52 * 100 / 0x1p-8);
}

void check_all(TestProblem& made) {
  const Incoming in = incoming(made.problem, 5);
  const ReferenceGradients gradients = reference_gradients(made.problem, in.d_out.view(), in.d_log_sum_exp.view());
  const auto each = [&](float& number, double gradient) {
    expect_derivative(
        made.problem, in, number, [&](float x) { number = x; }, gradient);
  };
  for (std::int64_t i = 0; i < made.q.size(); ++i) each(made.q.data()[i], gradients.d_q.data()[i]);
  for (std::size_t s = 0; s < made.sequences.size(); ++s) {
    for (auto [rows, gradient] :
         {std::pair(&made.keys[s], &gradients.d_k[s]), std::pair(&made.values[s], &gradients.d_v[s])}) {
      const auto [length, heads, channels] = gradient->shape();
      for (std::int64_t j = 0; j < length; ++j)
        for (std::int64_t g = 0; g < heads; ++g)
          for (std::int64_t c = 0; c < channels; ++c)
            expect_derivative(
                made.problem, in, stored(rows->rows, j, g, c), [&](float x) { rows->set(j, g, c, x); },
                (*gradient)(j, g, c));
    }
  }
  const Tensor<double, 3> d_bias = bias_gradient(made, gradients.d_score);
  for (std::int64_t i = 0; i < d_bias.size(); ++i) {
    if (std::isfinite(made.bias_numbers.data()[i]))
      each(made.bias_numbers.data()[i], d_bias.data()[i]);
    else
      EXPECT_EQ(d_bias.data()[i], 0);
  }
  for (std::size_t h = 0; h < made.sink_scores.size(); ++h) {
    each(made.sink_scores[h], gradients.d_sinks(static_cast<std::int64_t>(h)));
  }
}

Shape small() {
  Shape shape;
  shape.queries = {3, 2};
  shape.lengths = {5, 4};
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.channels = 3;
  shape.value_channels = 2;
  return shape;
}

TEST(BackwardReference, IsTheDerivative) {
  TestProblem made(small());
  check_all(made);
}

TEST(BackwardReference, IsTheDerivativeWithMasksSoftcapSinksAndDropout) {
  TestProblem made(small());
  made.problem.mask.causal = true;
  made.problem.mask.window_left = 3;
  made.problem.softcap = 1.5f;
  made.problem.scale = -0.7f;
  made.sinks({0.3f, -1.0f, 0.0f, 2.0f});
  made.visible(0, {1, 1, 0, 1, 1});
  made.problem.dropout = {0.3f, 4};
  made.edges({{0, 0, 0, 2, 0.5f}, {1, 2, 1, 4, -kInfinity}});
  check_all(made);
}

TEST(BackwardReference, IsTheDerivativeWithABiasPerHead) {
  TestProblem made(small());
  Tensor<float, 3> bias({1, 4, 5});
  for (std::int64_t i = 0; i < bias.size(); ++i)
    bias.data()[i] = i % 6 == 5 ? -kInfinity : 0.1f * static_cast<float>(i % 7);
  made.bias(std::move(bias));
  made.problem.mask.bias.shape[0] = 5;
  made.problem.mask.bias.stride[0] = 0;
  made.sinks({0.3f, -1.0f, -kInfinity, 2.0f});
  made.sink_scores[2] = 0.0f;
  check_all(made);
}

}  // namespace
}  // namespace regard::test
