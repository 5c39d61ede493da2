#pragma once
// Time and memory of one head over S positions, two ways: with the S x S weights written out, and by the engine's
// kernel.

#include <cstdint>

#include "parallel/progress.h"

namespace regard {

struct Cost {
  double seconds = 0;
  std::int64_t bytes = 0;  // beside queries, keys, values and outputs
};

// Scores by the engine's dense product, its softmax row by row, and the product with the values: S x S numbers in
// memory.
Cost square_way(std::int64_t positions, std::int64_t channels);
Cost kernel_way(std::int64_t positions, std::int64_t channels);
// What the first will take.
std::int64_t square_bytes(std::int64_t positions);

}  // namespace regard
