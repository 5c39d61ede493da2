#pragma once
// The truth: attention as the formula says it, in float64, one score at a time. Slow, small, meant to be read.

#include "attention/problem.h"
#include "tensor/buffer.h"

namespace regard {

struct ReferenceAttention {
  Tensor<double, 3> out;          // [rows, H, E]
  Tensor<double, 2> log_sum_exp;  // [rows, H]; -inf for a row that saw nothing
  Tensor<double, 3> weight;       // [rows, H, longest S], 0 where masked; before dropout
  Tensor<double, 2> sink;         // [rows, H]: the sink's share
};

// The same problem that forward() and read() take. Memory rows x H x S: for tests.
ReferenceAttention reference_attention(const Problem& problem);

struct ReferenceGradients {
  Tensor<double, 3> d_q;               // [rows, H, D]
  std::vector<Tensor<double, 3>> d_k;  // per sequence: [length, G, D]
  std::vector<Tensor<double, 3>> d_v;  // [length, G, E]
  Tensor<double, 3> d_score;           // [rows, H, longest S]: of the masked score, which is what a bias cell gets
  Tensor<double, 1> d_sinks;           // [H]
};

// What backward() computes. d_log_sum_exp may have null data. attention/backward.h has the formulas.
ReferenceGradients reference_gradients(const Problem& problem, View<const float, 3> d_out,
                                       View<const float, 2> d_log_sum_exp = {});

// One stored number of a key or value row.
double reference_element(const Rows& rows, std::int64_t j, std::int64_t kv_head, std::int64_t channel);

}  // namespace regard
