#pragma once
// Thousands of what-ifs of one text, each with exactly the bits that a whole run with its edits would give, at a
// fraction of the work:
//
//   1. a what-if starts at its first edited layer, from the clean run's residual;
//   2. only rows that its edits touch, and rows after one that changed, pass (where rows read both ways, all of them
//      once one has changed);
//   3. in the last layer only the rows of the metric go on, and only the logits that the metric needs are made;
//   4. what-ifs pass together, as rows of the same products: the weights are read once for all;
//   5. keys and values of rows that did not change are the clean run's, seen through a table of pointers;
//   6. rows before the first whose residual still differs stop passing; a what-if with none ends.
//
// All of this is exact because a row's bits do not depend on what passes beside it (law 3).

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "intervention/cells.h"
#include "intervention/edit_tap.h"
#include "intervention/metric.h"
#include "parallel/progress.h"

namespace regard {

struct SweepOptions {
  std::int64_t row = -1;           // where the metric is measured (not for those of all rows); negative: from the end
  std::int64_t batch_rows = 1024;  // rows that pass together: bounds memory, never changes a bit
  Progress* progress = nullptr;    // told what-ifs done
};

struct WhatIfResult {
  std::int64_t index = 0;
  double value = 0;               // the metric; the clean run's bits when nothing that reaches it changed
  std::vector<Receipt> receipts;  // of each edit
};

class Sweep {
 public:
  // clean: kept with sites() at least. All must outlive it.
  Sweep(const Model& model, const RunRecord& clean, const Measure& measure, const SweepOptions& options);
  static std::set<Site> sites() { return {Site::resid_pre, Site::rot_k, Site::v}; }

  // Runs what-ifs [0, count): cells(i) gives the edits of what-if i (called more than once; must give the same).
  // done(result) is called for each, as batches end, from this thread, in the order of work.
  void run(std::int64_t count, const std::function<std::vector<Cells>(std::int64_t)>& cells,
           const std::function<void(WhatIfResult)>& done);

  // Bytes that a batch of `rows` rows takes.
  static std::int64_t bytes_for(const ModelConfig& config, std::int64_t tokens, std::int64_t rows);

 private:
  class Batch;
  const Model& model_;
  const RunRecord& clean_;
  const Measure& measure_;
  SweepOptions options_;
  std::int64_t row_, end_;  // where the metric is measured; rows from `end_` on cannot reach it
  State state_;
};

struct WholeRun {
  WhatIfResult result;
  Tensor<float, 2> resid;  // [1, C] at the row asked for, after the last block
};
// A what-if with everything computed again from the tokens: what a sweep is compared with. `look`, if given, sees the
// edited run.
WholeRun whole_run(const Model& model, std::span<const std::int32_t> ids, std::span<const Cells> cells,
                   const Measure& measure, std::int64_t row, Tap* look = nullptr, Progress* progress = nullptr);

}  // namespace regard
