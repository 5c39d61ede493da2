#pragma once
// The engine's attention on rows that lie in memory one after another, with its scores and weights: what every number
// of the lesson goes through.

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/problem.h"
#include "lesson/exploration.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace regard {

struct AttendOptions {
  bool causal = false;                     // bottom-right
  std::vector<std::uint8_t> visible = {};  // [S] padding; empty: all
  std::optional<float> scale = {};         // 1 / sqrt(D)
};

struct Attended {
  Tensor<float, 3> scores, weights;  // [T, H, S]; -inf and 0 where masked
  Tensor<float, 3> outputs;          // [T, H, E]
};

// q: [T, H, D], k: [S, G, D], v: [S, G, E], row-major.
Attended attend(View<const float, 3> q, View<const float, 3> k, View<const float, 3> v,
                const AttendOptions& options = {});

// One head: [rows, channels] each.
Attended attend(View<const float, 2> q, View<const float, 2> k, View<const float, 2> v,
                const AttendOptions& options = {});
// The rows of a head that has no others.
View<const float, 2> one_head(const Tensor<float, 3>& rows);

// How many (row, key) pairs are read, counted by a reader.
std::int64_t pairs_read(std::int64_t rows, std::int64_t keys, bool causal);

// x w by the engine's dense product; x: [R, C], w: [C, N].
Tensor<float, 2> project(View<const float, 2> x, View<const float, 2> w);
Tensor<float, 2> to_tensor(const SmallMatrix& matrix);

}  // namespace regard
