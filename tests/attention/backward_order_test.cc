// The order of backward's sums (docs/attention-kernel.md), written out in plain scalar code and compared to the bit.

#include <gtest/gtest.h>

#include "attention/backward_support.h"

namespace regard::test {
namespace {

// One sequence, no sinks, no softcap; weights are those that read() gives.
Grads in_canonical_order(const TestProblem& made, const Incoming& in) {
  const Problem& problem = made.problem;
  const auto [rows, heads, D] = problem.q.shape;
  const std::int64_t G = problem.kv_heads, E = problem.value_channels, S = problem.sequences[0].length;
  const std::int64_t group = heads / G, lanes = rows * group;
  const Rows &k = problem.sequences[0].k, &v = problem.sequences[0].v;
  const Result result = run(problem);
  const Tensor<float, 3> p = pattern(problem, result);
  const float scale = 1 / std::sqrt(static_cast<float>(D));
  Grads grads{Tensor<float, 3>({rows, heads, D}), {}, {}, Tensor<float, 3>({rows, heads, S}), {}};
  grads.d_k.emplace_back(std::array{S, G, D});
  grads.d_v.emplace_back(std::array{S, G, E});
  Tensor<float, 3> z({rows, heads, S});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) {
      float delta = 0;
      for (std::int64_t e = 0; e < E; ++e) delta = std::fma(in.d_out(r, h, e), result.out(r, h, e), delta);
      delta -= in.d_log_sum_exp(r, h);
      for (std::int64_t j = 0; j < S; ++j) {
        float w = 0;
        for (std::int64_t e = 0; e < E; ++e) w = std::fma(stored(v, j, h / group, e), in.d_out(r, h, e), w);
        grads.d_bias(r, h, j) = p(r, h, j) * (w - delta) + 0.0f;
        z(r, h, j) = p(r, h, j) * (w - delta) * scale;
      }
    }
  }
  for (std::int64_t g = 0; g < G; ++g) {
    const auto over_lanes = [&](auto factor, auto number) {
      float sum = 0;
      for (std::int64_t first = 0; first < lanes; first += 192) {
        float chain = 0;
        for (std::int64_t lane = first; lane < std::min(first + 192, lanes); ++lane) {
          const std::int64_t r = lane / group, h = g * group + lane % group;
          chain = std::fma(factor(r, h), number(r, h), chain);
        }
        sum += chain;
      }
      return sum + 0.0f;
    };
    for (std::int64_t j = 0; j < S; ++j) {
      for (std::int64_t e = 0; e < E; ++e) {
        grads.d_v[0](j, g, e) =
            over_lanes([&](auto r, auto h) { return p(r, h, j); }, [&](auto r, auto h) { return in.d_out(r, h, e); });
      }
      for (std::int64_t d = 0; d < D; ++d) {
        grads.d_k[0](j, g, d) =
            over_lanes([&](auto r, auto h) { return z(r, h, j); }, [&](auto r, auto h) { return problem.q(r, h, d); });
      }
    }
  }
  const std::int64_t chunk = std::max<std::int64_t>(4, (S + 1023) / 1024) * 128;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t d = 0; d < D; ++d) {
        float sum = 0;
        for (std::int64_t c = 0; c < S; c += chunk) {
          float part = 0;
          for (std::int64_t block = c; block < std::min(c + chunk, S); block += 128) {
            float chain = 0;
            for (std::int64_t j = block; j < std::min(block + 128, S); ++j) {
              chain = std::fma(z(r, h, j), stored(k, j, h / group, d), chain);
            }
            part += chain;
          }
          sum += part;
        }
        grads.d_q(r, h, d) = sum + 0.0f;
      }
    }
  }
  return grads;
}

TEST(BackwardOrder, ToTheBit) {
  // Several blocks of lanes and several chunks; then chunks of 5 blocks.
  for (const auto& [queries, length] : {std::array{110, 1300}, std::array{3, 4200}}) {
    TestProblem made(shape_of(queries, length, 4, 2, 5, 9));
    made.problem.mask.causal = true;
    made.bias(Tensor<float, 3>({queries, 4, length}));
    const Incoming in = incoming(made.problem, 3);
    const Grads expected = in_canonical_order(made, in);
    on_every_form([&](const std::string& form) {
      SCOPED_TRACE(form);
      const Grads grads = run_backward(made, in);
      EXPECT_TRUE(same_bits(grads.d_q, expected.d_q));
      EXPECT_TRUE(same_bits(grads.d_k[0], expected.d_k[0]));
      EXPECT_TRUE(same_bits(grads.d_v[0], expected.d_v[0]));
      EXPECT_TRUE(same_bits(grads.d_bias, expected.d_bias));
    });
  }
}

}  // namespace
}  // namespace regard::test
