#pragma once
// The second pass: weights = exp(score - max) / sum, tile by tile, handed to any number of readers. Memory O(S). The
// first pass (forward) is not repeated and not changed: looking changes nothing (law 2).

#include <vector>

#include "attention/problem.h"
#include "tensor/buffer.h"

namespace regard {

// A tile of weights: `lanes` (row, head) pairs of one sequence and one key/value head by keys [key_begin, key_begin +
// keys). weight[key * stride + lane], score likewise (score = -inf, weight = 0 where masked). Lanes of a tile: rows
// ascending, heads of the group inside a row.
struct WeightTile {
  std::int32_t sequence = 0;
  std::int64_t kv_head = 0;
  std::int64_t key_begin = 0;
  std::int64_t keys = 0;  // <= 128; blocks of 128 keys anchored at key 0
  int lanes = 0;
  int stride = 0;  // >= lanes, whole vectors of the target; data beyond `lanes` may be anything
  const float* weight = nullptr;
  const float* score = nullptr;
  const std::int64_t* row = nullptr;    // [lanes] index into problem.rows
  const std::int32_t* head = nullptr;   // [lanes] query head
  const RowSoftmax* softmax = nullptr;  // [lanes]
};

// Receives tiles. For one lane, tiles come with keys ascending, all on one thread; different lanes may come on
// different threads at once: state per row needs no lock, state across rows must be kept per thread and merged in
// finish() in a way that does not depend on which thread got what. How many lanes a tile has is free, too. A tile in
// which no lane sees a key is not handed out.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual void begin(const Problem& problem, int threads) = 0;
  virtual void tile(const WeightTile& tile, int thread) = 0;
  virtual void finish() {}
};

// softmax: what forward() gave for the same problem.
void read(const Problem& problem, View<const RowSoftmax, 2> softmax, std::span<Reader* const> readers);

// Exact weights of chosen rows and heads over keys [key_begin, key_end): [rows.size(), heads.size(), keys], 0 where
// masked.
Tensor<float, 3> weights(const Problem& problem, View<const RowSoftmax, 2> softmax, std::span<const std::int64_t> rows,
                         std::span<const std::int32_t> heads, std::int64_t key_begin, std::int64_t key_end);

// The whole pattern [rows, H, longest S]: S x S memory, only when asked by this name.
Tensor<float, 3> full_pattern(const Problem& problem, View<const RowSoftmax, 2> softmax);

}  // namespace regard
