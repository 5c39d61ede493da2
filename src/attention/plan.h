#pragma once
// How the work of a call is cut for the threads. Where it is cut changes no bit of any result, only the time.

#include <cstdint>
#include <vector>

#include "attention/kernel.h"

namespace regard {

// What one thread takes at a time: lanes of one sequence for key/value heads [head_begin, head_end). One head if there
// are lanes enough to reuse its keys; all heads if there are few, because then the time goes into reading memory.
struct Unit {
  std::int32_t sequence = 0;
  std::int64_t head_begin = 0, head_end = 0;
  std::int64_t first_lane = 0;  // of all lanes of the sequence and head: row-major, heads of the group inside a row
  std::int64_t lanes = 0;       // of each head
  bool narrow = false;          // cut into blocks of at most kNarrowLanes
  std::int64_t work = 0;        // lanes x heads x keys they reach
};

class Plan {
 public:
  // Units with the most work first (with causal masks: the latest rows).
  Plan(const Problem& problem, int threads);
  const std::vector<Unit>& units() const { return units_; }
  std::vector<LaneBlock> lanes(const Unit& unit) const;

 private:
  void cut(std::int64_t lanes_per_unit);

  const Problem& problem_;
  Visibility visibility_;
  std::vector<std::vector<std::int64_t>> rows_;  // per sequence
  std::vector<Unit> units_;
};

}  // namespace regard
