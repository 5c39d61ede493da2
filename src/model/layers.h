#pragma once
// The parts that blocks and the unembedding are made of.

#include <cstdint>
#include <vector>

#include "attention/problem.h"
#include "model/model.h"
#include "tensor/view.h"

namespace regard {

// y = W x (+ b); x: [R, K], y: [R, N].
void apply(const Linear& linear, View<const float, 2> x, View<float, 2> y);
// x, y: [R, C]; may be the same memory.
void apply(const Norm& norm, const ModelConfig& config, View<const float, 2> x, View<float, 2> y);
// Router logits [R, experts] -> which experts each row takes (ascending) and with what weights: [R * used] each.
struct Routes {
  std::vector<std::int32_t> expert;
  std::vector<float> weight;
};
Routes routes(const Mixture& mixture, View<const float, 2> logits);
// A layer's attention without what a pass brings: queries, rows, sequences.
Problem attention_problem(const Model& model, std::int64_t layer);
// The same of what reads the source.
Problem cross_attention_problem(const Model& model, std::int64_t layer);

}  // namespace regard
