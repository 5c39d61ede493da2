#pragma once
// Which lanes of a pass are read, and where their values go: the chosen rows of one sequence and the chosen heads.

#include <cstdint>
#include <vector>

#include "attention/problem.h"
#include "attention/read.h"

namespace regard {

struct Placement {
  std::int32_t sequence = 0;
  std::vector<std::int32_t> row;   // [rows of the problem] index among the rows that are kept, -1: not read
  std::vector<std::int32_t> head;  // [H] index among the heads that are kept, -1: not read

  // Every row of that sequence, kept under its own index, and every head.
  static Placement all(const Problem& problem, std::int32_t sequence = 0) {
    Placement all{sequence, {}, {}};
    for (std::size_t r = 0; r < problem.rows.size(); ++r)
      all.row.push_back(problem.rows[r].sequence == sequence ? static_cast<std::int32_t>(r) : -1);
    for (std::int64_t h = 0; h < problem.q.shape[1]; ++h) all.head.push_back(static_cast<std::int32_t>(h));
    return all;
  }
  // Is anything of lanes [first, first + count) kept?
  bool keeps(const WeightTile& tile, int first, int count) const {
    if (tile.sequence != sequence) return false;
    for (int lane = first; lane < first + count; ++lane)
      if (keeps(tile, lane)) return true;
    return false;
  }
  bool keeps(const WeightTile& tile, int lane) const { return row[tile.row[lane]] >= 0 && head[tile.head[lane]] >= 0; }
};

// Readers work through a tile this many lanes at a time.
inline constexpr int kLaneGroup = 64;

// Lanes [first, first + count) of a tile, count <= kLaneGroup, first a multiple of it.
struct LaneGroup {
  const WeightTile& tile;
  int first = 0;
  int count = 0;
};

// body(LaneGroup) for every group that holds something to keep.
template <typename Body>
void for_each_group(const WeightTile& tile, const Placement& placement, Body&& body) {
  for (int first = 0; first < tile.lanes; first += kLaneGroup) {
    const int count = tile.lanes - first < kLaneGroup ? tile.lanes - first : kLaneGroup;
    if (placement.keeps(tile, first, count)) body(LaneGroup{tile, first, count});
  }
}

}  // namespace regard
