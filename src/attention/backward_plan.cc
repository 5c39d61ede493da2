#include "attention/backward_plan.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <tuple>

namespace regard {

std::vector<BackwardUnit> backward_units(const Problem& problem) {
  std::vector<BackwardUnit> units;
  for (std::size_t sequence = 0; sequence < problem.sequences.size(); ++sequence) {
    const std::int64_t length = problem.sequences[sequence].length;
    for (std::int64_t head = 0; head < problem.kv_heads; ++head) {
      BackwardUnit& unit = units.emplace_back();
      unit.sequence = static_cast<std::int32_t>(sequence);
      unit.kv_head = head;
      unit.chunk_keys = chunk_keys(length);
      unit.chunks = length == 0 ? 0 : (length + unit.chunk_keys - 1) / unit.chunk_keys;
    }
  }
  return units;
}

void fill_lanes(const Problem& problem, const Visibility& visibility, std::span<const std::int64_t> rows,
                BackwardUnit& unit) {
  const std::int64_t group = problem.q.shape[1] / problem.kv_heads;
  unit.lanes = std::ssize(rows) * group;
  for (std::int64_t lane = 0; lane < unit.lanes; ++lane) {
    if (lane % kLaneBlock == 0) {
      LaneBlock& block = unit.blocks.emplace_back();
      block.problem = &problem;
      block.sequence = &problem.sequences[unit.sequence];
      block.sequence_index = unit.sequence;
      block.kv_head = unit.kv_head;
    }
    unit.blocks.back().add(problem, visibility, rows[lane / group],
                           static_cast<std::int32_t>(unit.kv_head * group + lane % group));
  }
}

SharedBias shared_bias(const Problem& problem, const View<float, 3>& d_bias) {
  SharedBias shared;
  if (d_bias.data == nullptr) return shared;
  shared.any = true;
  std::int64_t step[3], reach[3];  // reach: from an axis' first number to its last
  for (int axis = 0; axis < 3; ++axis) {
    step[axis] = std::abs(d_bias.stride[axis]);
    reach[axis] = step[axis] * std::max<std::int64_t>(0, d_bias.shape[axis] - 1);
  }
  shared.sequences = step[0] == 0 || problem.mask.bias_by_position;
  shared.heads = step[1] == 0;
  shared.keys = step[2] == 0;
  // Axes in ascending order of their steps: each must step over all that the smaller ones reach, or cells coincide in
  // ways that are not looked into.
  int order[3] = {0, 1, 2};
  std::sort(order, order + 3, [&](int a, int b) { return std::tie(step[a], a) < std::tie(step[b], b); });
  std::int64_t below = 0;
  bool coincide[3] = {};
  for (int i = 0; i < 3; ++i) {
    const int axis = order[i];
    if (step[axis] != 0 && reach[axis] != 0 && step[axis] <= below) {
      for (int smaller = 0; smaller <= i; ++smaller) coincide[order[smaller]] = true;
    }
    below += reach[axis];
  }
  shared.sequences |= coincide[0];
  shared.heads |= coincide[1];
  shared.keys |= coincide[2];
  return shared;
}

std::vector<std::vector<BackwardTask>> backward_groups(std::span<const BackwardUnit> units, std::int64_t begin,
                                                       std::int64_t end, const SharedBias& shared) {
  struct Group {
    std::vector<BackwardTask> tasks;
    std::int64_t work = 0;
  };
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Group> groups;
  for (std::int64_t u = begin; u < end; ++u) {
    const BackwardUnit& unit = units[u];
    for (std::int64_t chunk = 0; chunk < unit.chunks; ++chunk) {
      // Chunks of sequences of different lengths end at different keys, so they share cells with more than one.
      const bool keys = shared.any && (shared.keys || shared.sequences);
      Group& group = groups[{shared.any && shared.sequences ? -1 : unit.sequence,
                             shared.any && shared.heads ? -1 : unit.kv_head, keys ? -1 : chunk}];
      group.tasks.push_back({u, chunk});
      const std::int64_t first = chunk * unit.chunk_keys;
      for (const LaneBlock& block : unit.blocks) {
        const KeyRange reach = block.reach();
        const std::int64_t keys_read = std::min(reach.end, first + unit.chunk_keys) - std::max(reach.begin, first);
        group.work += std::max<std::int64_t>(0, keys_read) * block.lanes();
      }
    }
  }
  std::vector<Group> ordered;
  for (auto& [unused, group] : groups) ordered.push_back(std::move(group));
  std::stable_sort(ordered.begin(), ordered.end(), [](const Group& a, const Group& b) { return a.work > b.work; });
  std::vector<std::vector<BackwardTask>> result;
  for (Group& group : ordered) result.push_back(std::move(group.tasks));
  return result;
}

}  // namespace regard
