#pragma once
// The what-ifs of a sweep: edits in which some selectors, left out, run over all their values.

#include <cstdint>
#include <string_view>
#include <vector>

#include "intervention/cells.h"
#include "intervention/sweep_axes.h"

namespace regard {

class SweepPlan : public SweepAxes {
 public:
  // each: "layer,head,row". Error{usage} for an axis that no edit has, or that an edit has already chosen. config and
  // runs must outlive the plan.
  SweepPlan(std::vector<Edit> edits, std::string_view each, const ModelConfig& config, const Runs& runs);

  // What-if i, counted with the last axis fastest.
  std::vector<Edit> edits(std::int64_t i) const { return edits_of(i); }
  std::vector<Cells> cells(std::int64_t i) const;
  // The what-ifs in which every edit matches something, ascending: the others have no effect to speak of. Error{usage}
  // when there is none, and when edits write the same cell.
  std::vector<std::int64_t> matching(Progress* progress = nullptr) const;

 private:
  const ModelConfig& config_;
  const Runs& runs_;
};

}  // namespace regard
