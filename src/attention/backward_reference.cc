// The gradients as the chain rule says them, in float64, one edge at a time.

#include <cmath>

#include "attention/dropout.h"
#include "attention/reference.h"

namespace regard {

ReferenceGradients reference_gradients(const Problem& problem, View<const float, 3> d_out,
                                       View<const float, 2> d_log_sum_exp) {
  const ReferenceAttention forward = reference_attention(problem);
  const auto [rows, heads, channels] = problem.q.shape;
  const std::int64_t group = heads / problem.kv_heads, value_channels = problem.value_channels;
  const double scale = problem.scale ? double{*problem.scale} : 1 / std::sqrt(static_cast<double>(channels));
  ReferenceGradients result;
  result.d_q = Tensor<double, 3>({rows, heads, channels});
  result.d_score = Tensor<double, 3>(forward.weight.shape());
  result.d_sinks = Tensor<double, 1>({heads});
  for (const Sequence& sequence : problem.sequences) {
    result.d_k.emplace_back(std::array{sequence.length, problem.kv_heads, channels});
    result.d_v.emplace_back(std::array{sequence.length, problem.kv_heads, value_channels});
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int32_t of = problem.rows[r].sequence;
    const Sequence& sequence = problem.sequences[of];
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t g = h / group;
      // Softmax: d_score = P (dP - delta), dP the gradient of a weight, delta = sum P dP; a masked edge is not there.
      double delta = d_log_sum_exp.data != nullptr ? -double{d_log_sum_exp(r, h)} : 0.0;
      std::vector<double> d_weight(sequence.length, 0.0);
      for (std::int64_t j = 0; j < sequence.length; ++j) {
        const double weight = forward.weight(r, h, j);
        const double factor = dropout_factor(problem, r, static_cast<std::int32_t>(h), j);
        if (weight == 0 || factor == 0) continue;
        for (std::int64_t e = 0; e < value_channels; ++e) {
          d_weight[j] += factor * double{d_out(r, h, e)} * reference_element(sequence.v, j, g, e);
          result.d_v[of](j, g, e) += factor * weight * double{d_out(r, h, e)};
        }
        delta += weight * d_weight[j];
      }
      if (forward.sink(r, h) != 0) result.d_sinks(h) -= forward.sink(r, h) * delta;
      for (std::int64_t j = 0; j < sequence.length; ++j) {
        const double weight = forward.weight(r, h, j);
        if (weight == 0) continue;
        const double d_score = weight * (d_weight[j] - delta);
        result.d_score(r, h, j) = d_score;
        double d_product = d_score * scale;
        if (problem.softcap > 0) {
          double dot = 0;
          for (std::int64_t d = 0; d < channels; ++d)
            dot += double{problem.q(r, h, d)} * reference_element(sequence.k, j, g, d);
          const double tanh = std::tanh(dot * scale / problem.softcap);
          d_product *= 1 - tanh * tanh;
        }
        for (std::int64_t d = 0; d < channels; ++d) {
          result.d_q(r, h, d) += d_product * reference_element(sequence.k, j, g, d);
          result.d_k[of](j, g, d) += d_product * double{problem.q(r, h, d)};
        }
      }
    }
  }
  return result;
}

}  // namespace regard
