#pragma once
// Why a model says what it says: what its answer depends on, beside what attention shows.
//
// For every position s of the text, the change of the metric
// - hide_from_last: when the metric's row may not read s, in all layers and heads (attention knockout, Geva et al.
// 2023); nothing where the metric is about all rows;
// - hide_from_all: when no other row may read s. Where rows read to the left these are later ones, and at the metric's
// row it is 0: no row that the metric sees reads that one later;
// - keys_only, values_only, both: when the keys, values or both of s come from the contrast run, in all layers;
// and three readings of the same row (of the mean of all rows, where the metric is about all) that cost no what-if:
// - attention: its weight on s, mean over layers and heads;
// - rollout: Abnar & Zuidema 2020 (reading/rollout.h);
// - norm_weighted: |sum_h P_h(s) v_s W_O^h| (Kobayashi et al. 2020), each layer's made to sum to 1, mean over layers.
// For every layer and head, the change when its z is 0 in every row (zero_z).

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "intervention/experiment.h"
#include "tensor/buffer.h"

namespace regard {

struct WhyRequest {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> contrast;  // empty: none; else as many tokens as ids
  Metric metric;
  std::int64_t row = -1;                          // of no meaning to a metric of all rows
  std::optional<std::int64_t> contrast_row = {};  // as ExperimentRequest
  bool heads = true;                              // also zero_z
  // Hides, and takes from the contrast, only as many positions: those that attribution patching
  // (intervention/gradient_reading.h), which costs one pass back, puts first. Nothing: all.
  std::optional<std::int64_t> confirm = {};
  std::int64_t batch_rows = 1024;  // as SweepOptions
};

inline constexpr double kNoWhatIf = std::numeric_limits<double>::quiet_NaN();

// Changes of the metric, edited - base; NaN where there is no such what-if (a row cannot hide itself) or where the
// screen left it out.
struct WhyResult {
  Metric metric;
  std::int64_t row = 0;   // where it is measured; -1: over all rows
  std::int64_t seen = 0;  // positions [0, seen) are those that the measured rows may depend on
  double base = 0;
  std::optional<double> contrast;
  std::vector<double> attention, rollout, norm_weighted;  // [T] shares of the row; 0 from `seen` on
  std::vector<double> hide_from_last, hide_from_all;      // [T]
  std::vector<double> keys_only, values_only, both;       // [T], empty without a contrast
  std::vector<double> screened;                           // [T] what hide_from_all would be to first order; or empty
  Tensor<double, 2> zero_z;                               // [L][H], empty when not asked for
  std::int64_t what_ifs = 0;
  std::vector<std::pair<std::string, Receipt>> receipts;  // summed over the what-ifs of a kind, by its edit
};

// Error{usage} when the contrast has another number of tokens, Error{bad_input} for a text of no tokens; with a screen
// also the errors of read_gradients().
WhyResult why(const Model& model, const WhyRequest& request, Progress* progress = nullptr);

// What-ifs that it will run.
std::int64_t what_ifs_of(const WhyRequest& request, const ModelConfig& config);

}  // namespace regard
