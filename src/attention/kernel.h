#pragma once
// What the dispatched kernels do with one block of lanes. Internal to this folder; docs/attention-kernel.md is the
// contract.

#include <cstdint>
#include <span>
#include <vector>

#include "attention/lanes.h"
#include "attention/read.h"
#include "attention/scratch.h"

namespace regard {

// Where results go; data may be null except out's.
struct Output {
  View<float, 3> out;           // [rows, H, E]
  View<RowSoftmax, 2> softmax;  // [rows, H]
  View<float, 2> log_sum_exp;   // [rows, H]
};

// Blocks of 128 keys, [begin, end).
struct BlockRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
inline BlockRange blocks_of(KeyRange keys) {
  if (keys.empty()) return {};
  return {keys.begin / kKeyBlock, (keys.end + kKeyBlock - 1) / kKeyBlock};
}

// Takes the tiles of a block of lanes, keys ascending.
class TileSink {
 public:
  virtual ~TileSink() = default;
  virtual void tile(const WeightTile& tile) = 0;
};

// Lanes of one vector on the target in force.
int vector_lanes();

// A block of lanes may come alone, or, if it is narrow, together with the narrow blocks of other key/value heads and of
// the same rows: a key's row holds all heads side by side, so they read memory in order together.

// All keys, and the results written.
void attend(std::span<const LaneBlock> blocks, const Output& output, Scratch& scratch);

// The same in two steps, so that threads can share the keys. First every key block leaves a state; then the states are
// merged in block order. states: [key blocks][state_size].
std::int64_t state_size(std::span<const LaneBlock> blocks);
void attend_part(std::span<const LaneBlock> blocks, BlockRange range, float* states, Scratch& scratch);
void attend_merge(std::span<const LaneBlock> blocks, std::int64_t parts, float* states, const Output& output,
                  Scratch& scratch);

// Weights over `keys`, to a sink.
void weigh(std::span<const LaneBlock> blocks, KeyRange keys, View<const RowSoftmax, 2> softmax, TileSink& sink,
           Scratch& scratch);

}  // namespace regard
