#pragma once
// Gradients of attention. With P the weights, o the output, g = d_out, and everything of one row and head:
//
//   delta = sum_e g[e] o[e] - d_log_sum_exp
//   dS[j] = P[j] (f[j] sum_e g[e] v[j, e] - delta)                               the gradient of the masked score
//   dZ[j] = dS[j] (1 - (capped[j] / softcap)^2) scale                             of the product of query and key
//   d_q = sum_j dZ[j] k[j]      d_k[j] = sum dZ[j] q      d_v[j] = sum f[j] P[j] g     over the rows and heads that
//   read j d_bias = dS      d_sink = sum over rows of -P_sink delta
//
// f is dropout's factor, 0 or 1 / (1 - probability); without dropout 1.
// (FlashAttention-2, Dao 2023, section 3.1; softcap, bias and sink by the chain rule.) P is computed again from the
// scores; nothing of size S x S is stored. A masked edge contributes nothing, not even 0 x NaN, and a row that saw
// nothing has gradients of exactly 0.

#include <span>

#include "attention/problem.h"

namespace regard {

// Where gradients go: they are written, not added. Any strides. What has null data (or is empty) is not computed.
struct Gradients {
  View<float, 3> d_q;  // [rows, H, D]
  // Per sequence, by the key's position in it, wherever its row lies: [length, G, D] and [length, G, E].
  std::span<const View<float, 3>> d_k, d_v;
  // The shape of the bias, stride 0 where the bias has it; cells that several edges share get their sum. Shared cells
  // bind the work together: with one bias for all heads, the heads of a key chunk go to one thread.
  View<float, 3> d_bias;
  View<float, 1> d_sinks;  // [H]
};

// out: [rows, H, E] and softmax: [rows, H], what forward() gave for the same problem; d_out: [rows, H, E]; and, where
// the loss reads it, d_log_sum_exp: [rows, H] (may have null data). Same bits for any number of threads and any target
// (docs/attention-kernel.md has the order of sums), whatever other sequences are in the problem. Errors as forward().
void backward(const Problem& problem, View<const float, 3> out, View<const RowSoftmax, 2> softmax,
              View<const float, 3> d_out, const Gradients& gradients, View<const float, 2> d_log_sum_exp = {});

}  // namespace regard
