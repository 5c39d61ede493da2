#pragma once
// What a metric depends on, by its gradient: a forward pass and one back, whatever the number of positions. First
// orders of what why() measures exactly: a screen for it (WhyRequest::confirm), not a proof.
//
// - gradient_x_input[s] = sum_c d metric / d x[s, c] * x[s, c], x: what the first block reads (resid_pre of layer 0, so
//   the embedding of s): the change of the metric, to first order, if x[s] were scaled (Shrikumar et al. 2017).
// - hidden[s]: the change, to first order, if no other row read s: attribution patching (Nanda 2023) with the softmax
//   taken exactly (AtP*, Kramar et al. 2024, section 3.1.1: its gradient is near 0 where a weight is near 1, just where
//   it matters most). Without key s, row t of head h holds z' = (z - p v_s) / (1 - p), p its weight on s, so
//
//     hidden[s] = sum over layers, rows t != s that read s, heads h of <d metric / d z[t, h], z'[t, h] - z[t, h]>

#include <cstdint>
#include <span>
#include <vector>

#include "attention/problem.h"
#include "intervention/metric.h"
#include "model/model.h"

namespace regard {

struct GradientReading {
  Metric metric;  // its tokens filled in
  double base = 0;
  std::vector<double> gradient_x_input, hidden;  // [T]; 0 where the measured row cannot see
};

// The metrics that have a gradient here: logit, logprob, prob, diff.
bool has_gradient(MetricKind kind);

// row: where it is measured; negative counts from the end. Error{unsupported} for a metric without a gradient (ranks
// are steps; divergences from the clean run have none there) and for models that gradients do not cover (ModelPass).
GradientReading read_gradients(const Model& model, std::span<const std::int32_t> ids, const Metric& metric,
                               std::int64_t row);

// The sum above of one layer: effects[s] += ... over the rows of `problem`, all of one text, without edge edits, keys
// and values in f32; `softmax`: of its forward pass; d_z: [rows, H, E]. In double, rows and heads in order.
void add_hidden_key_effects(const Problem& problem, View<const RowSoftmax, 2> softmax, View<const float, 3> d_z,
                            std::span<double> effects);

}  // namespace regard
