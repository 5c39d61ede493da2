#include "attention/plan.h"

#include <unistd.h>

#include <algorithm>

namespace regard {
namespace {

// Bytes of queries and outputs of a unit, if there is plenty of work. Keys and values of a block are laid out once per
// unit, so units should be large; they are read from the second cache once per panel, and must still fit there beside
// all this.
std::int64_t unit_bytes() {
  static const std::int64_t second_cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return second_cache > 0 ? std::clamp<std::int64_t>(second_cache / 8 * 5, 160 << 10, 800 << 10) : 400 << 10;
}
// Units per thread below which units are made smaller.
constexpr int kUnitsPerThread = 4;
// A head with up to this many lanes is taken in narrow blocks. Two of them beat one vector of lanes, half of whose time
// goes into loads.
constexpr std::int64_t kNarrowHead = 2 * kNarrowLanes;

}  // namespace

Plan::Plan(const Problem& problem, int threads)
    : problem_(problem), visibility_(problem), rows_(rows_by_sequence(problem)) {
  const std::int64_t panel = 3 * vector_lanes();
  const std::int64_t lane_bytes =
      (problem.q.shape[2] + problem.value_channels) * static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t panels = std::max<std::int64_t>(1, unit_bytes() / (lane_bytes * panel)); panels >= 1; panels /= 2) {
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
      const bool narrow = all <= kNarrowHead;
      const std::int64_t heads = narrow ? problem_.kv_heads : 1;
      for (std::int64_t head = 0; head < problem_.kv_heads; head += heads) {
        units_.push_back({static_cast<std::int32_t>(sequence), head, head + heads, first, lanes, narrow, work * heads});
      }
    }
  }
}

std::vector<LaneBlock> Plan::lanes(const Unit& unit) const {
  const std::int64_t group = problem_.q.shape[1] / problem_.kv_heads;
  const std::int64_t pieces = unit.narrow ? (unit.lanes + kNarrowLanes - 1) / kNarrowLanes : 1;
  std::vector<LaneBlock> blocks;
  for (std::int64_t kv_head = unit.head_begin; kv_head < unit.head_end; ++kv_head) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      LaneBlock& block = blocks.emplace_back();
      block.problem = &problem_;
      block.sequence = &problem_.sequences[unit.sequence];
      block.sequence_index = unit.sequence;
      block.kv_head = kv_head;
      const std::int64_t end = unit.first_lane + unit.lanes * (piece + 1) / pieces;
      for (std::int64_t lane = unit.first_lane + unit.lanes * piece / pieces; lane < end; ++lane) {
        block.add(problem_, visibility_, rows_[unit.sequence][lane / group],
                  static_cast<std::int32_t>(kv_head * group + lane % group));
      }
    }
  }
  return blocks;
}

}  // namespace regard
