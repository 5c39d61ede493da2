#include "attention/plan.h"

#include <algorithm>

namespace regard {
namespace {

// Panels (three vectors each) of a unit, if there is plenty of work: keys and values of a block are read from the
// second cache once per panel, and queries and outputs of this many panels still lie beside them there.
constexpr int kPanels = 8;
// Units per thread below which units are made smaller.
constexpr int kUnitsPerThread = 4;

}  // namespace

Plan::Plan(const Problem& problem, int threads)
    : problem_(problem), visibility_(problem), rows_(rows_by_sequence(problem)) {
  const std::int64_t panel = 3 * vector_lanes();
  for (int panels = kPanels; panels >= 1; panels /= 2) {
    cut(panels * panel);
    if (threads == 1 || std::ssize(units_) >= threads * kUnitsPerThread) break;
  }
  std::stable_sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) { return a.work > b.work; });
}

void Plan::cut(std::int64_t lanes_per_unit) {
  units_.clear();
  const std::int64_t group = problem_.q.shape[1] / problem_.kv_heads;
  for (std::size_t sequence = 0; sequence < rows_.size(); ++sequence) {
    const std::int64_t all = std::ssize(rows_[sequence]) * group;
    for (std::int64_t first = 0; first < all; first += lanes_per_unit) {
      const std::int64_t lanes = std::min(lanes_per_unit, all - first);
      std::int64_t work = 0;
      for (std::int64_t row = first / group; row <= (first + lanes - 1) / group; ++row) {
        const KeyRange keys = visibility_.of(problem_.rows[rows_[sequence][row]]).keys;
        work = std::max(work, lanes * (keys.end - keys.begin));
      }
      for (std::int64_t kv_head = 0; kv_head < problem_.kv_heads; ++kv_head) {
        units_.push_back({static_cast<std::int32_t>(sequence), kv_head, first, lanes, work});
      }
    }
  }
}

LaneBlock Plan::lanes(const Unit& unit) const {
  const std::int64_t group = problem_.q.shape[1] / problem_.kv_heads;
  LaneBlock block;
  block.problem = &problem_;
  block.sequence = &problem_.sequences[unit.sequence];
  block.sequence_index = unit.sequence;
  block.kv_head = unit.kv_head;
  for (std::int64_t lane = unit.first_lane; lane < unit.first_lane + unit.lanes; ++lane) {
    block.add(problem_, visibility_, rows_[unit.sequence][lane / group],
              static_cast<std::int32_t>(unit.kv_head * group + lane % group));
  }
  return block;
}

}  // namespace regard
