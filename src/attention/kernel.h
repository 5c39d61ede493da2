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

// All keys of a block of lanes, and the results written.
void attend(const LaneBlock& lanes, const Output& output, Scratch& scratch);

// The same in two steps, so that threads can share the keys: one state per key block, then those merged in block order.
std::int64_t state_size(const LaneBlock& lanes);  // floats of one state
void attend_part(const LaneBlock& lanes, BlockRange blocks, float* states, Scratch& scratch);
void attend_merge(const LaneBlock& lanes, std::int64_t blocks, float* states, const Output& output, Scratch& scratch);

// Weights of a block of lanes over `keys`, to a sink.
void weigh(const LaneBlock& lanes, KeyRange keys, View<const RowSoftmax, 2> softmax, TileSink& sink, Scratch& scratch);

}  // namespace regard
