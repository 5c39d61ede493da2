#pragma once
// Which position, if any, is the attention sink: the one that many heads read strongly from everywhere, whatever it
// says.

#include <cstdint>
#include <optional>
#include <span>

#include "tensor/view.h"
#include "weights/model_config.h"

namespace regard {

struct AttentionSink {
  std::int64_t position = 0;
  double share = 0;  // of the heads, those that use it
  double mass = 0;   // alpha of the position, mean over all heads: what part of their reading went there
};

struct SinkCriteria {
  double epsilon = 0.3;       // a head uses position k as a sink when alpha_k exceeds this
  double least_share = 0.25;  // and a position is named when this share of the heads does
};

// alpha_k = column_sum_k / n, the mean weight on k of the n rows that see it (T - k of a causal text without a window);
// Sink_k = the share of heads with alpha_k > epsilon (Gu 2410.10781, epsilon 0.3). In a short text every early position
// is read a lot without being a sink, so alpha_k must also be twice what even reading gives it; and half of the text
// must see it, in a layer without a window. column_sum: [layers, heads, T] over all T rows, of those `layers` of the
// model. The position with the largest share, the lower of equals.
std::optional<AttentionSink> find_sink(View<const float, 3> column_sum, const ModelConfig& config,
                                       std::span<const std::int64_t> layers, const SinkCriteria& criteria = {});

}  // namespace regard
