#pragma once
// The what-ifs of a sweep of an encoder-decoder: edits in which some selectors, left out, run over all their values. As
// SweepPlan, but that rows and keys may be positions of either text.

#include <cstdint>
#include <string_view>
#include <vector>

#include "intervention/two_texts.h"
#include "parallel/progress.h"

namespace regard {

class TwoTextPlan {
 public:
  // The edits of the experiment, which must outlive the plan. each: "layer,head,row". Error{usage} for an axis that no
  // edit has, that an edit has already chosen, or that runs over different things in different edits.
  TwoTextPlan(const TwoTextExperiment& experiment, std::string_view each);

  const std::vector<Selector>& each() const { return each_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }    // one extent per axis
  bool of_source(std::size_t axis) const { return of_source_[axis]; }  // a row or key that is a position of the source
  std::int64_t count() const;                                          // of what-ifs
  // What-if i, counted with the last axis fastest.
  std::vector<PlacedEdit> edits(std::int64_t i) const;
  // As SweepPlan::matching().
  std::vector<std::int64_t> matching(Progress* progress = nullptr) const;

 private:
  const TwoTextExperiment& experiment_;
  std::vector<Selector> each_;
  std::vector<std::int64_t> shape_;
  std::vector<bool> of_source_;
};

}  // namespace regard
