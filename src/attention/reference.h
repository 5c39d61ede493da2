#pragma once
// The truth: attention as the formula says it, in float64, one score at a time. Slow, small, meant to be read.

#include "attention/problem.h"
#include "tensor/buffer.h"

namespace regard {

struct ReferenceAttention {
  Tensor<double, 3> out;          // [rows, H, E]
  Tensor<double, 2> log_sum_exp;  // [rows, H]; -inf for a row that saw nothing
  Tensor<double, 3> weight;       // [rows, H, longest S], 0 where masked
  Tensor<double, 2> sink;         // [rows, H]: the sink's share
};

// The same problem that forward() and read() take. Memory rows x H x S: for tests.
ReferenceAttention reference_attention(const Problem& problem);

}  // namespace regard
