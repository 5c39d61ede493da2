#pragma once
// How the work of backward() is cut. What the bits depend on (chunks of keys) follows from the length of a sequence
// alone; what depends on memory and threads (waves) leaves no trace.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/backward_kernel.h"

namespace regard {

// Keys of one task: 4 key blocks, or an eighth of the sequence if that is more. Each task has its own sums of d_q,
// which are added in the order of the chunks: memory for 8 times d_q at most.
constexpr std::int64_t chunk_keys(std::int64_t length) {
  return std::max<std::int64_t>(4, (length + 8 * kKeyBlock - 1) / (8 * kKeyBlock)) * kKeyBlock;
}

// Every sequence and key/value head, in that order; blocks of lanes are not there yet.
std::vector<BackwardUnit> backward_units(const Problem& problem);
void fill_lanes(const Problem& problem, const Visibility& visibility, std::span<const std::int64_t> rows,
                BackwardUnit& unit);

struct BackwardTask {
  std::int64_t unit = 0, chunk = 0;
};

// Which tasks may not run at once, because they add to the same cells of d_bias.
struct SharedBias {
  bool any = false;  // is d_bias asked for?
  bool sequences = false, heads = false, keys = false;
};
SharedBias shared_bias(const Problem& problem, const View<float, 3>& d_bias);

// Tasks of units [begin, end): groups that may run at once, those with the most work first. The tasks of a group run
// one after the other, by unit and chunk.
std::vector<std::vector<BackwardTask>> backward_groups(std::span<const BackwardUnit> units, std::int64_t begin,
                                                       std::int64_t end, const SharedBias& shared);

}  // namespace regard
