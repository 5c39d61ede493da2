#pragma once
// Why an encoder-decoder says what it says: what the decoder's answer depends on, the three attentions apart.
//
// For every position s of the source, the change of the metric
// - hide_from_last: when the metric's row may not read s, in cross attention, in all layers and heads;
// - hide_from_all: when no row of the decoder's text may;
// - hide_in_encoder: when no other position of the source may read s while the source is encoded. The decoder still
//   reads s itself.
// For every position of the decoder's text hide_from_last and hide_from_all as why() has them, of the decoder's own
// attention. For every layer and head of each attention, the change when its z is 0 in every row.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "intervention/two_texts.h"
#include "tensor/buffer.h"

namespace regard {

struct TwoTextWhyRequest {
  std::vector<std::int32_t> source, target;
  Metric metric;
  std::int64_t row = -1;           // of the target
  bool heads = true;               // also zero_z
  std::int64_t batch_rows = 1024;  // as TwoTextRequest
};

// Changes of the metric, edited - base; NaN where there is no such what-if (a row cannot hide itself).
struct TwoTextWhy {
  Metric metric;
  std::int64_t row = 0;
  double base = 0;
  std::vector<float> logits;  // [V] at the row
  struct Source {
    std::vector<double> attention;  // [S] cross weight of the row, mean over layers and heads
    std::vector<double> hide_from_last, hide_from_all, hide_in_encoder;
  } source;
  struct Target {
    std::vector<double> attention;  // [T] own weight of the row, mean over layers and heads
    std::vector<double> hide_from_last, hide_from_all;
  } target;
  Tensor<double, 2> zero_z[kAttentions];  // [L][H] each, empty when not asked for
  std::int64_t what_ifs = 0;
  std::vector<std::pair<std::string, Receipt>> receipts;  // summed over the what-ifs of a kind, by its edit
};

// Errors: as TwoTextExperiment.
TwoTextWhy why(const Model& model, const TwoTextWhyRequest& request, Progress* progress = nullptr);

}  // namespace regard
