#pragma once
// Gradients of test problems, and the yardstick of their errors.

#include <cmath>
#include <random>
#include <ranges>
#include <vector>

#include "attention/backward.h"
#include "attention/dropout.h"
#include "attention/support.h"

namespace regard::test {

// d_bias lies in memory as the bias does: TestProblem::bias_numbers, seen through the same strides.
struct Grads {
  Tensor<float, 3> d_q;
  std::vector<Tensor<float, 3>> d_k, d_v;
  Tensor<float, 3> d_bias;
  Tensor<float, 1> d_sinks;
};

struct Incoming {
  Tensor<float, 3> d_out;
  Tensor<float, 2> d_log_sum_exp;
};

inline Incoming incoming(const Problem& problem, unsigned seed) {
  const auto [rows, heads, unused] = problem.q.shape;
  Incoming result{Tensor<float, 3>({rows, heads, problem.value_channels}), Tensor<float, 2>({rows, heads})};
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (float& x : std::span(result.d_out.data(), result.d_out.size())) x = normal(random);
  for (float& x : std::span(result.d_log_sum_exp.data(), result.d_log_sum_exp.size())) x = normal(random);
  return result;
}

// Where in bias_numbers the bias's view starts.
inline std::ptrdiff_t bias_origin(const TestProblem& made) {
  return made.problem.mask.bias.data - made.bias_numbers.data();
}

inline Grads run_backward(const TestProblem& made, const Incoming& in) {
  const Problem& problem = made.problem;
  const Result result = run(problem);
  const auto untouched = [](auto& tensor) {  // everything must be written
    std::fill_n(tensor.data(), tensor.size(), 777.0f);
  };
  Grads grads;
  grads.d_q = Tensor<float, 3>(problem.q.shape);
  untouched(grads.d_q);
  std::vector<View<float, 3>> d_k, d_v;
  for (const Sequence& sequence : problem.sequences) {
    grads.d_k.emplace_back(std::array{sequence.length, problem.kv_heads, problem.q.shape[2]});
    grads.d_v.emplace_back(std::array{sequence.length, problem.kv_heads, problem.value_channels});
    untouched(grads.d_k.back());
    untouched(grads.d_v.back());
    d_k.push_back(grads.d_k.back().view());
    d_v.push_back(grads.d_v.back().view());
  }
  Gradients wanted{grads.d_q.view(), d_k, d_v, {}, {}};
  if (problem.mask.bias.data != nullptr) {
    grads.d_bias = Tensor<float, 3>(made.bias_numbers.shape());
    wanted.d_bias = {grads.d_bias.data() + bias_origin(made), problem.mask.bias.shape, problem.mask.bias.stride};
  }
  if (!problem.sinks.empty()) {
    grads.d_sinks = Tensor<float, 1>({problem.q.shape[1]});
    untouched(grads.d_sinks);
    wanted.d_sinks = grads.d_sinks.view();
  }
  backward(problem, result.out.view(), result.softmax.view(), in.d_out.view(), wanted, in.d_log_sum_exp.view());
  return grads;
}

// Each cell of the bias gets the gradients of the scores it was added to, rows, heads and keys ascending.
template <typename T>
Tensor<T, 3> bias_gradient(const TestProblem& made, const Tensor<T, 3>& d_score) {
  const View<const float, 3>& bias = made.problem.mask.bias;
  if (bias.data == nullptr) return {};
  Tensor<T, 3> result(made.bias_numbers.shape());
  for (std::int64_t r = 0; r < d_score.shape()[0]; ++r) {
    for (std::int64_t h = 0; h < d_score.shape()[1]; ++h) {
      for (std::int64_t j = 0; j < made.problem.sequences[made.query_rows[r].sequence].length; ++j) {
        const std::int64_t at = made.problem.mask.bias_by_position ? made.query_rows[r].position : r;
        result.data()[&bias(at, h, j) - made.bias_numbers.data()] += d_score(r, h, j);
      }
    }
  }
  return result;
}

// The gradients in float32, one plain loop per sum, ascending or descending, libm. Which edges are masked is taken from
// the truth.
inline Grads plain_gradients(const TestProblem& made, const Incoming& in, const ReferenceAttention& truth,
                             bool ascending) {
  const auto order = [ascending](std::int64_t n) {
    return std::views::iota(std::int64_t{0}, n) |
           std::views::transform([=](std::int64_t i) { return ascending ? i : n - 1 - i; });
  };
  const Problem& problem = made.problem;
  const auto [rows, heads, channels] = problem.q.shape;
  const std::int64_t value_channels = problem.value_channels;
  const float scale = problem.scale ? *problem.scale : 1 / std::sqrt(static_cast<float>(channels));
  Grads grads;
  grads.d_q = Tensor<float, 3>(problem.q.shape);
  grads.d_sinks = Tensor<float, 1>({heads});
  Tensor<float, 3> d_score(truth.weight.shape());
  for (const Sequence& sequence : problem.sequences) {
    grads.d_k.emplace_back(std::array{sequence.length, problem.kv_heads, channels});
    grads.d_v.emplace_back(std::array{sequence.length, problem.kv_heads, value_channels});
  }
  for (const std::int64_t r : order(rows)) {
    const std::int32_t of = problem.rows[r].sequence;
    const Sequence& sequence = problem.sequences[of];
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t g = h / (heads / problem.kv_heads);
      std::vector<float> s(sequence.length, -kInfinity), tanh(sequence.length, 0.0f);
      const float sink = problem.sinks.empty() ? -kInfinity : problem.sinks[h];
      float max = sink;
      for (const std::int64_t j : order(sequence.length)) {
        if (truth.weight(r, h, j) == 0) continue;
        s[j] = plain_score(problem, r, h, j, order(channels), &tanh[j]);
        max = std::max(max, s[j]);
      }
      if (max == -kInfinity) continue;
      float sum = 0;
      for (float& score : s) sum += score = std::exp(score - max);
      sum += std::exp(sink - max);
      std::vector<float> out(value_channels, 0.0f);
      for (const std::int64_t j : order(sequence.length)) {
        if (truth.weight(r, h, j) == 0) continue;
        s[j] /= sum;
        const float factor = dropout_factor(problem, r, static_cast<std::int32_t>(h), j);
        for (const std::int64_t e : order(value_channels)) out[e] += factor * s[j] * stored(sequence.v, j, g, e);
      }
      float delta = 0;
      for (const std::int64_t e : order(value_channels)) {
        if (out[e] != 0) delta += in.d_out(r, h, e) * out[e];
      }
      delta -= in.d_log_sum_exp(r, h);
      if (sink != -kInfinity) grads.d_sinks(h) -= std::exp(sink - max) / sum * delta;
      for (const std::int64_t j : order(sequence.length)) {
        if (truth.weight(r, h, j) == 0) continue;
        float d_weight = 0;
        const float factor = dropout_factor(problem, r, static_cast<std::int32_t>(h), j);
        for (const std::int64_t e : order(value_channels)) {
          d_weight += in.d_out(r, h, e) * stored(sequence.v, j, g, e);
          grads.d_v[of](j, g, e) += factor * s[j] * in.d_out(r, h, e);
        }
        d_score(r, h, j) = s[j] * (factor * d_weight - delta);
        const float d_product = d_score(r, h, j) * (1 - tanh[j] * tanh[j]) * scale;
        for (const std::int64_t d : order(channels)) {
          grads.d_q(r, h, d) += d_product * stored(sequence.k, j, g, d);
          grads.d_k[of](j, g, d) += d_product * problem.q(r, h, d);
        }
      }
    }
  }
  grads.d_bias = bias_gradient(made, d_score);
  return grads;
}

// Squared: what a gradient is off, and its own size.
struct Distance {
  double error = 0, size = 0;
  template <typename T, int Rank>
  void add(const Tensor<T, Rank>& got, const Tensor<double, Rank>& truth) {
    for (std::int64_t i = 0; i < got.size(); ++i) {
      error += std::pow(got.data()[i] - truth.data()[i], 2);
      size += std::pow(truth.data()[i], 2);
    }
  }
};

struct Distances {
  Distance d_q, d_k, d_v, d_bias, d_sinks;
};

inline Distances distances(const TestProblem& made, const Grads& grads, const ReferenceGradients& truth) {
  Distances result;
  result.d_q.add(grads.d_q, truth.d_q);
  for (std::size_t i = 0; i < truth.d_k.size(); ++i) {
    result.d_k.add(grads.d_k[i], truth.d_k[i]);
    result.d_v.add(grads.d_v[i], truth.d_v[i]);
  }
  if (made.problem.mask.bias.data != nullptr) result.d_bias.add(grads.d_bias, bias_gradient(made, truth.d_score));
  if (!made.problem.sinks.empty()) result.d_sinks.add(grads.d_sinks, truth.d_sinks);
  return result;
}

// Law 1, gradient by gradient in the Euclidean norm (a gradient of a few numbers that nearly cancel is a matter of luck
// number by number): at most twice as far from the truth as a plain evaluation, of two orders of summation the further
// one, beside the rounding of the result itself.
inline void expect_law_1(const TestProblem& made, const Incoming& in, const Grads& grads) {
  const ReferenceAttention forward = reference_attention(made.problem);
  const ReferenceGradients truth = reference_gradients(made.problem, in.d_out.view(), in.d_log_sum_exp.view());
  const Distances up = distances(made, plain_gradients(made, in, forward, true), truth);
  const Distances down = distances(made, plain_gradients(made, in, forward, false), truth);
  const Distances got = distances(made, grads, truth);
  const auto expect = [&](Distance Distances::*of, const char* name) {
    const double plain = std::sqrt(std::max((up.*of).error, (down.*of).error));
    EXPECT_LE(std::sqrt((got.*of).error), 2 * plain + std::sqrt((got.*of).size) * 0x1p-23) << name;
  };
  expect(&Distances::d_q, "d_q");
  expect(&Distances::d_k, "d_k");
  expect(&Distances::d_v, "d_v");
  expect(&Distances::d_bias, "d_bias");
  expect(&Distances::d_sinks, "d_sinks");
}

inline bool same_bits(const Grads& a, const Grads& b) {
  bool same = same_bits(a.d_q, b.d_q) && same_bits(a.d_bias, b.d_bias) && same_bits(a.d_sinks, b.d_sinks);
  for (std::size_t i = 0; i < a.d_k.size(); ++i) {
    same = same && same_bits(a.d_k[i], b.d_k[i]) && same_bits(a.d_v[i], b.d_v[i]);
  }
  return same;
}

// The gradients on every target and with several numbers of threads: law 1, and the same bits. Returns them.
inline Grads gradients_on_every_form(const TestProblem& made, const Incoming& in, bool check_law_1 = true) {
  std::optional<Grads> first;
  on_every_form([&](const std::string& form) {
    SCOPED_TRACE(form);
    Grads grads = run_backward(made, in);
    if (!first) {
      if (check_law_1) expect_law_1(made, in, grads);
      first = std::move(grads);
    } else {
      EXPECT_TRUE(same_bits(*first, grads));
    }
  });
  return std::move(*first);
}

}  // namespace regard::test
