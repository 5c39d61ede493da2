#pragma once
// What-ifs of an encoder-decoder: a source text, what the decoder has said so far, edits of any of the three
// attentions, and what the decoder says at one of its rows then.
//
// Every what-if runs again from its tokens, but for the source, which is encoded anew only where an edit is about the
// encoder. Several run as sequences of one pass, so that weights are read once for all of them; a row has the same
// bits with whatever it passes (law 3), so that the result is that of a run alone.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intervention/experiment.h"
#include "intervention/placed_edit.h"
#include "intervention/prepared_edits.h"
#include "intervention/sweep.h"
#include "parallel/progress.h"

namespace regard {

struct TwoTextRequest {
  std::vector<std::int32_t> source, target;
  // Other sources, by name, that the same target reads; "contrast" is the one that recovery is about.
  std::map<std::string, std::vector<std::int32_t>> runs = {};
  std::vector<PlacedEdit> edits = {};
  Metric metric = {};
  std::int64_t row = -1;           // of the target; negative counts from the end
  std::int64_t batch_rows = 1024;  // that pass together
  Continuation continuation = {};  // of the target, where it is the beginning of what is being made
};

// The edits of one what-if.
struct TwoTextCells {
  std::vector<Cells> of[kAttentions];  // each in the order of the edits
  bool changes(Attention attention) const { return !of[static_cast<int>(attention)].empty(); }
};

class TwoTextExperiment {
 public:
  // Checks the edits first, then runs what they need. `partial`: an edit may match nothing or write a cell twice.
  // Errors: as resolve() and check(); Error{unsupported} for a metric that is not about the decoder's logits.
  TwoTextExperiment(const Model& model, TwoTextRequest request, bool partial, Progress* progress = nullptr);
  TwoTextExperiment(const TwoTextExperiment&) = delete;
  TwoTextExperiment& operator=(const TwoTextExperiment&) = delete;

  const Model& model() const { return model_; }
  const TwoTextRequest& request() const { return request_; }
  std::int64_t row() const { return row_; }
  const Measure& measure() const { return *measure_; }
  View<const float, 2> encoded() const { return encoded_.view(); }
  // The metric of the run called contrast. Nothing without.
  std::optional<double> contrast() const;
  TwoTextCells resolve(std::span<const PlacedEdit> edits) const;
  // Error{usage} for two edits that write the same cell, and for one that matches nothing.
  void check(std::span<const PlacedEdit> edits) const;
  // What its edits see of the model: in cross attention every row sees every key.
  const ModelConfig& config(Attention attention) const;
  // Whether every edit matches something.
  bool matches(std::span<const PlacedEdit> edits) const;

  struct Found {
    WhatIfResult result;         // receipts in the order of the edits
    View<const float, 2> resid;  // [1, C] at the row, after the last block
  };
  // What-ifs 0 .. count - 1 in order, as patch() would make each. Rows of the target after row() cannot reach the
  // metric and pass only if `whole`: receipts then tell of them too.
  void run(std::int64_t count, const std::function<std::vector<PlacedEdit>(std::int64_t)>& edits,
           const std::function<void(const Found&)>& found, Progress* progress = nullptr, bool whole = false) const;

 private:
  const Model& model_;
  TwoTextRequest request_;
  ModelConfig across_;  // the decoder's, as its attention to the source sees: every key, whatever the row
  std::int64_t row_ = 0;
  Tensor<float, 2> encoded_;
  Runs runs_[kAttentions];
  std::map<std::string, RunRecord> records_[kAttentions];
  std::optional<Measure> measure_;
  Tensor<float, 2> contrast_;  // [1, C] at the row, empty without
};

// One run with all edits of the request, and what they did.
PatchResult patch(const TwoTextExperiment& experiment, Progress* progress = nullptr);

}  // namespace regard
