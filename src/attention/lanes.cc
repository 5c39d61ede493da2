#include "attention/lanes.h"

#include <algorithm>
#include <tuple>

namespace regard {

void LaneBlock::add(const Problem& p, const Visibility& visibility, std::int64_t r, std::int32_t h) {
  row.push_back(r);
  head.push_back(h);
  visible.push_back(visibility.of(p.rows[r]));
  segment.push_back(p.rows[r].segment);
  if (!p.mask.edges.empty()) {
    const auto before = [](const EdgeEdit& edge, const std::pair<std::int64_t, std::int32_t>& lane) {
      return std::tie(edge.row, edge.head) < std::tie(lane.first, lane.second);
    };
    const auto after = [](const std::pair<std::int64_t, std::int32_t>& lane, const EdgeEdit& edge) {
      return std::tie(lane.first, lane.second) < std::tie(edge.row, edge.head);
    };
    const auto begin = p.mask.edges.begin(), end = p.mask.edges.end();
    const auto first = std::lower_bound(begin, end, std::pair(r, h), before);
    const auto last = std::upper_bound(first, end, std::pair(r, h), after);
    edges.push_back({first - begin, last - begin});
  }
}

KeyRange LaneBlock::reach() const {
  KeyRange all;
  for (const RowVisibility& lane : visible) {
    if (lane.keys.empty()) continue;
    all.begin = all.empty() ? lane.keys.begin : std::min(all.begin, lane.keys.begin);
    all.end = std::max(all.end, lane.keys.end);
  }
  return all;
}

KeyRange reach_of(std::span<const LaneBlock> blocks) {
  KeyRange all;
  for (const LaneBlock& block : blocks) {
    const KeyRange mine = block.reach();
    if (mine.empty()) continue;
    all = all.empty() ? mine : KeyRange{std::min(all.begin, mine.begin), std::max(all.end, mine.end)};
  }
  return all;
}

std::vector<Panel> panels_of(const LaneBlock& block, int vector_lanes) {
  std::vector<Panel> panels;
  for (int lane = 0; lane < block.lanes();) {
    const int left = (block.lanes() - lane + vector_lanes - 1) / vector_lanes;
    Panel panel;
    panel.first_lane = lane;
    panel.vectors = left == 4 ? 2 : std::min(3, left);
    panel.lanes = std::min(panel.vectors * vector_lanes, block.lanes() - lane);
    lane += panel.lanes;
    for (int i = panel.first_lane; i < lane; ++i) {
      const auto& [keys, scattered] = block.visible[i];
      if (!keys.empty()) {
        panel.reach.begin = panel.reach.empty() ? keys.begin : std::min(panel.reach.begin, keys.begin);
        panel.reach.end = std::max(panel.reach.end, keys.end);
      }
      panel.shared.begin = std::max(panel.shared.begin, keys.begin);
      panel.shared.end = i == panel.first_lane ? keys.end : std::min(panel.shared.end, keys.end);
      panel.scattered |= scattered;
    }
    panels.push_back(panel);
  }
  return panels;
}

std::vector<std::vector<std::int64_t>> rows_by_sequence(const Problem& problem) {
  std::vector<std::vector<std::int64_t>> rows(problem.sequences.size());
  for (std::int64_t r = 0; r < std::ssize(problem.rows); ++r) rows[problem.rows[r].sequence].push_back(r);
  return rows;
}

}  // namespace regard
