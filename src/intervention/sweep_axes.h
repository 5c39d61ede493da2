#pragma once
// The axes of a sweep: selectors that its edits leave out, each of which runs over all its values.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "intervention/edit.h"
#include "parallel/progress.h"

namespace regard {

class SweepAxes {
 public:
  const std::vector<Selector>& each() const { return each_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }  // one extent per axis
  std::int64_t count() const;                                        // of what-ifs

 protected:
  // each: "layer,head,row". extent: how far an axis runs. typed: the first edit as its text form, for what is said of a
  // wrong axis. Error{usage} for an axis that no edit has, or that every edit that has it has already chosen.
  SweepAxes(std::vector<Edit> edits, std::string_view each, const std::function<std::int64_t(Selector)>& extent,
            std::string_view typed);

  // What-if i, counted with the last axis fastest.
  std::vector<Edit> edits_of(std::int64_t i) const;
  bool runs_over(std::size_t edit, Selector selector) const;
  // What-ifs that `matches`, ascending. check(i) throws what is wrong with a what-if: asked of those that match where
  // several edits may write the same cell, and of the first where none matches.
  std::vector<std::int64_t> matching(const std::function<bool(std::int64_t)>& matches,
                                     const std::function<void(std::int64_t)>& check, Progress* progress) const;

 private:
  std::vector<Edit> edits_;
  std::vector<Selector> each_;
  std::vector<std::int64_t> shape_;
};

}  // namespace regard
