#pragma once
// The runs that a set of edits needs: the prompt's own, and those that edits take values from.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "intervention/cells.h"
#include "intervention/edit_tap.h"
#include "intervention/metric.h"
#include "intervention/pattern_distance.h"
#include "parallel/progress.h"

namespace regard {

struct ExperimentRequest {
  std::vector<std::int32_t> ids;
  std::map<std::string, std::vector<std::int32_t>> runs;  // by name; "contrast" is the one that recovery is about
  std::vector<Edit> edits;
  Metric metric;
  std::int64_t row = -1;  // where logits are looked at; negative counts from the end
  // The same in the contrast; left out: at its last row when `row` is -1, else at the same one.
  std::optional<std::int64_t> contrast_row = {};
  std::set<Site> sites = {};  // of the clean run, beside those that the edits need
  // Path patching (Wang et al. 2022; Goldowsky-Dill et al. 2023): what the edits change reaches the answer only through
  // these, "SITE selectors" ("q layer=9 head=9 row=-1"). Empty: by every way.
  std::vector<Edit> receivers = {};
};

class Experiment {
 public:
  // Checks the edits first, then runs what they need. `partial`: an edit may match nothing or write a cell twice (a
  // sweep fills in the rest). Errors: as resolve() and check(); Error{usage} for a row that is not there.
  Experiment(const Model& model, ExperimentRequest request, bool partial, Progress* progress = nullptr);
  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;

  const Model& model() const { return model_; }
  const std::vector<std::int32_t>& ids() const { return request_.ids; }
  const std::vector<Edit>& edits() const { return request_.edits; }
  const std::vector<Edit>& receivers() const { return request_.receivers; }
  std::int64_t tokens() const { return std::ssize(request_.ids); }
  std::int64_t row() const { return row_; }
  const Runs& runs() const { return runs_; }
  const RunRecord& clean() const { return records_.at(kClean); }
  const Measure& measure() const { return *measure_; }
  // The metric of the contrast run. Nothing without.
  std::optional<double> contrast() const;
  std::vector<Cells> resolve(std::span<const Edit> edits) const;

  // Bytes that the runs take.
  static std::int64_t bytes_needed(const ModelConfig& config, const ExperimentRequest& request);

 private:
  const Model& model_;
  ExperimentRequest request_;
  std::int64_t row_ = 0, contrast_row_ = 0;
  Runs runs_;
  std::map<std::string, RunRecord> records_;
  std::optional<Measure> measure_;
};

// One run with all edits, and what they did.
struct PatchResult {
  double base = 0, edited = 0;
  std::optional<double> contrast, recovery;  // recovery = (edited - contrast) / (base - contrast)
  std::vector<Receipt> receipts;             // of each edit
  std::vector<float> before, after;          // logits [V] at the row; empty without a head
  std::vector<Receipt> received;             // of each receiver
  std::optional<PatternDistance> pattern;    // of the weights, where edits are about them
  Divergence divergence;                     // of the two distributions; NaN without a head
};

// What is known of it before anything is changed.
PatchResult before_edits(const Measure& measure, std::optional<double> contrast);
// With receivers: the edits run while every head that they do not write keeps the clean run's z (the feed-forward
// layers run on), and what the receivers then hold is all that is changed in a second run.
PatchResult patch(const Experiment& experiment, Progress* progress = nullptr);

// The text form of a receiver, "SITE selectors". Error{usage} as for an edit.
Edit parse_receiver(std::string_view text);

}  // namespace regard
