#include "attention/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/dropout.h"
#include "tensor/half.h"

namespace regard {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

bool sees(const Problem& problem, const QueryRow& row, std::int64_t j) {
  const Sequence& sequence = problem.sequences[row.sequence];
  const Mask& mask = problem.mask;
  if (!sequence.visible.empty() && sequence.visible[j] == 0) return false;
  if (!sequence.segment.empty() && sequence.segment[j] != row.segment) return false;
  if (mask.causal && j > row.position) return false;
  if (mask.window_left > 0 && j <= row.position - mask.window_left) return false;
  if (mask.window_right >= 0 && j > row.position + mask.window_right) return false;
  return true;
}

double score(const Problem& problem, std::int64_t r, std::int64_t h, std::int64_t j) {
  const QueryRow& row = problem.rows[r];
  if (!sees(problem, row, j)) return kMasked;
  const auto& [rows, heads, channels] = problem.q.shape;
  const std::int64_t kv_head = h / (heads / problem.kv_heads);
  double s = 0;
  for (std::int64_t d = 0; d < channels; ++d) {
    s += double{problem.q(r, h, d)} * reference_element(problem.sequences[row.sequence].k, j, kv_head, d);
  }
  s *= problem.scale ? double{*problem.scale} : 1 / std::sqrt(static_cast<double>(channels));
  if (problem.softcap > 0) s = problem.softcap * std::tanh(s / problem.softcap);
  if (problem.mask.bias.data != nullptr) {
    const double bias = problem.mask.bias(problem.mask.bias_by_position ? problem.rows[r].position : r, h, j);
    if (bias == kMasked) return kMasked;
    s += bias;
  }
  for (const EdgeEdit& edge : problem.mask.edges) {
    if (edge.row != r || edge.head != h || j < edge.key_begin || j >= edge.key_end) continue;
    if (edge.add == -std::numeric_limits<float>::infinity()) return kMasked;
    s += edge.add;
  }
  return s;
}

}  // namespace

double reference_element(const Rows& rows, std::int64_t j, std::int64_t kv_head, std::int64_t channel) {
  const std::byte* at = rows.row(j) + kv_head * rows.head_stride + channel * rows.inner_stride;
  if (rows.dtype == DType::f32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  std::uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  return rows.dtype == DType::f16 ? f32_from_f16(half) : f32_from_bf16(half);
}

ReferenceAttention reference_attention(const Problem& problem) {
  const auto& [rows, heads, channels] = problem.q.shape;
  std::int64_t longest = 0;
  for (const Sequence& sequence : problem.sequences) longest = std::max(longest, sequence.length);
  ReferenceAttention result{Tensor<double, 3>({rows, heads, problem.value_channels}), Tensor<double, 2>({rows, heads}),
                            Tensor<double, 3>({rows, heads, longest}), Tensor<double, 2>({rows, heads})};
  std::vector<double> s(longest);
  for (std::int64_t r = 0; r < rows; ++r) {
    const Sequence& sequence = problem.sequences[problem.rows[r].sequence];
    for (std::int64_t h = 0; h < heads; ++h) {
      const double sink = problem.sinks.empty() ? kMasked : problem.sinks[h];
      double max = sink, sum = 0;
      for (std::int64_t j = 0; j < sequence.length; ++j) {
        s[j] = score(problem, r, h, j);
        max = std::max(max, s[j]);
      }
      if (max == kMasked) max = 0;  // saw nothing, or only NaN
      for (std::int64_t j = 0; j < sequence.length; ++j) sum += std::exp(s[j] - max);
      sum += std::exp(sink - max);
      result.log_sum_exp(r, h) = max + std::log(sum);
      if (sum == 0) continue;
      result.sink(r, h) = std::exp(sink - max) / sum;
      for (std::int64_t j = 0; j < sequence.length; ++j) {
        if (s[j] == kMasked) continue;  // adds nothing, not even 0 x NaN
        const double weight = std::exp(s[j] - max) / sum;
        result.weight(r, h, j) = weight;
        const double factor = dropout_factor(problem, r, static_cast<std::int32_t>(h), j);
        if (factor == 0) continue;
        for (std::int64_t e = 0; e < problem.value_channels; ++e) {
          result.out(r, h, e) += factor * weight * reference_element(sequence.v, j, h / (heads / problem.kv_heads), e);
        }
      }
    }
  }
  return result;
}

}  // namespace regard
