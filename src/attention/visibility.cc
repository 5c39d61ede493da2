#include "attention/visibility.h"

#include <algorithm>

namespace regard {

Visibility::Visibility(const Problem& problem) : problem_(problem), sequences_(problem.sequences.size()) {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    const Sequence& sequence = problem.sequences[i];
    PerSequence& mine = sequences_[i];
    mine.visible = {0, sequence.length};
    if (!sequence.visible.empty()) {
      KeyRange& range = mine.visible;
      while (range.begin < range.end && sequence.visible[range.begin] == 0) ++range.begin;
      while (range.begin < range.end && sequence.visible[range.end - 1] == 0) --range.end;
    }
    for (std::int64_t key = 0; key < std::ssize(sequence.segment); ++key) {
      Run& run = mine.segments[sequence.segment[key]];
      if (run.count++ == 0) run.keys.begin = key;
      run.keys.end = key + 1;
    }
  }
}

RowVisibility Visibility::of(const QueryRow& row) const {
  const PerSequence& sequence = sequences_[row.sequence];
  const Mask& mask = problem_.mask;
  RowVisibility result{sequence.visible, false};
  KeyRange& keys = result.keys;
  // validate() bounds positions and windows, so these sums do not overflow.
  if (mask.causal) keys.end = std::min(keys.end, row.position + 1);
  if (mask.window_left > 0) keys.begin = std::max(keys.begin, row.position - mask.window_left + 1);
  if (mask.window_right >= 0) keys.end = std::min(keys.end, row.position + mask.window_right + 1);
  if (!problem_.sequences[row.sequence].segment.empty()) {
    const auto found = sequence.segments.find(row.segment);
    if (found == sequence.segments.end()) {
      keys.end = keys.begin;
    } else {
      const Run& run = found->second;
      keys.begin = std::max(keys.begin, run.keys.begin);
      keys.end = std::min(keys.end, run.keys.end);
      result.scattered = run.count != run.keys.end - run.keys.begin;
    }
  }
  if (keys.empty()) keys = {};
  return result;
}

}  // namespace regard
