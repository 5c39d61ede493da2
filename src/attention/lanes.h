#pragma once
// How query rows become vector lanes. A lane is a (query row, query head) pair; the lanes of one sequence and one
// key/value head share every key and value they read. A block of lanes is the work of one thread at a time; inside it,
// panels of one to three vectors go through the register tiles.

#include <cstdint>
#include <span>
#include <vector>

#include "attention/problem.h"
#include "attention/visibility.h"

namespace regard {

// Keys come in blocks of this many, anchored at key 0. Part of the canonical order: never to be tuned.
inline constexpr int kKeyBlock = 128;

// A block of so few lanes is narrow: it takes other register tiles, with the same numbers.
inline constexpr int kNarrowLanes = 4;

struct LaneBlock {
  const Problem* problem = nullptr;
  const Sequence* sequence = nullptr;
  std::int32_t sequence_index = 0;
  std::int64_t kv_head = 0;
  // Per lane.
  std::vector<std::int64_t> row;
  std::vector<std::int32_t> head;
  std::vector<RowVisibility> visible;
  std::vector<std::int32_t> segment;
  std::vector<KeyRange> edges;  // indices into problem.mask.edges; empty when there are no edges at all

  int lanes() const { return static_cast<int>(row.size()); }
  void add(const Problem& problem, const Visibility& visibility, std::int64_t row, std::int32_t head);
  // Every key some lane may see.
  KeyRange reach() const;
};

// Every key some lane of some block may see.
KeyRange reach_of(std::span<const LaneBlock> blocks);

// Lanes [first_lane, first_lane + lanes) of a block, in `vectors` vectors.
struct Panel {
  int first_lane = 0;
  int lanes = 0;
  int vectors = 0;
  KeyRange reach;   // keys that some lane may see
  KeyRange shared;  // keys that every lane sees, as far as ranges tell
  bool scattered = false;
};

// Panels three vectors wide, the last ones narrower when there are fewer lanes; never one vector after a wider panel.
std::vector<Panel> panels_of(const LaneBlock& block, int vector_lanes);

// [kv head][first..]: indices of the problem's rows by sequence, ascending.
std::vector<std::vector<std::int64_t>> rows_by_sequence(const Problem& problem);

}  // namespace regard
