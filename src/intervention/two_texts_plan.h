#pragma once
// The what-ifs of a sweep of an encoder-decoder: as SweepPlan, but that rows and keys may be positions of either text.

#include <cstdint>
#include <string_view>
#include <vector>

#include "intervention/sweep_axes.h"
#include "intervention/two_texts.h"

namespace regard {

class TwoTextPlan : public SweepAxes {
 public:
  // The edits of the experiment, which must outlive the plan. each: "layer,head,row". Error{usage} for an axis that no
  // edit has, that an edit has already chosen, or that runs over different things in different edits.
  TwoTextPlan(const TwoTextExperiment& experiment, std::string_view each);

  // Per axis: a row or key that is a position of the source.
  const std::vector<bool>& of_source() const { return of_source_; }
  // What-if i, counted with the last axis fastest.
  std::vector<PlacedEdit> edits(std::int64_t i) const;
  // As SweepPlan::matching().
  std::vector<std::int64_t> matching(Progress* progress = nullptr) const;

 private:
  const TwoTextExperiment& experiment_;
  std::vector<bool> of_source_;
};

}  // namespace regard
