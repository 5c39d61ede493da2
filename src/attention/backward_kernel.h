#pragma once
// What the dispatched kernels of backward() do. Internal to this folder; docs/attention-kernel.md is the contract.

#include <cstdint>
#include <span>
#include <vector>

#include "attention/backward.h"
#include "attention/lanes.h"
#include "attention/scratch.h"

namespace regard {

// Lanes of one chain of d_k and d_v. Part of the order of sums: never to be tuned.
inline constexpr int kLaneBlock = 192;

// What backward() was called with.
struct BackwardCall {
  const Problem& problem;
  View<const float, 3> out;
  View<const RowSoftmax, 2> softmax;
  View<const float, 3> d_out;
  View<const float, 2> d_log_sum_exp;
  const Gradients& gradients;
};

// The lanes and keys of one sequence and key/value head.
struct BackwardUnit {
  std::int32_t sequence = 0;
  std::int64_t kv_head = 0;
  std::vector<LaneBlock> blocks;  // of kLaneBlock lanes, the last one fewer
  std::int64_t lanes = 0;
  std::int64_t chunk_keys = 0, chunks = 0;  // a chunk of keys is a task
  std::vector<float> delta;                 // [lanes]
  std::vector<float> sink;                  // [lanes]: what each adds to d_sinks; empty if nobody asks
  float* partial = nullptr;                 // [chunks][lanes][row_step(D)]: d_q of each chunk; null if nobody asks
};

// Rows of copies lie this many floats apart: whole vectors, and not a power of two.
constexpr std::int64_t row_step(std::int64_t channels) { return (channels + 15) / 16 * 16 + 16; }

// delta, and sink, of the lanes of block `index`.
void backward_deltas(const BackwardCall& call, BackwardUnit& unit, std::size_t index, Scratch& scratch);
// d_k and d_v of the chunk's keys, the chunk's part of d_q, and its additions to d_bias.
void backward_chunk(const BackwardCall& call, const BackwardUnit& unit, std::int64_t chunk, Scratch& scratch);
// d_q of the lanes of block `index`: the parts of the chunks, added in order.
void backward_queries(const BackwardCall& call, const BackwardUnit& unit, std::size_t index);

}  // namespace regard
