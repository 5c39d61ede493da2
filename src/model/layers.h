#pragma once
// The parts that blocks and the unembedding are made of.

#include <cstdint>

#include "attention/problem.h"
#include "model/model.h"
#include "tensor/view.h"

namespace regard {

// y = W x (+ b); x: [R, K], y: [R, N].
void apply(const Linear& linear, View<const float, 2> x, View<float, 2> y);
// x, y: [R, C]; may be the same memory.
void apply(const Norm& norm, const ModelConfig& config, View<const float, 2> x, View<float, 2> y);
// A layer's attention without what a pass brings: queries, rows, sequences.
Problem attention_problem(const ModelConfig& config, std::int64_t layer);

}  // namespace regard
