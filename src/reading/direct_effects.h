#pragma once
// Direct logit attribution: what each part of the model adds by itself to a logit, or to the difference of two, at
// chosen rows. The residual before the final norm is a sum of what the embedding, every head and every feed-forward
// wrote; the norm's scale is held at its value (frozen), so that the logit is linear in them:
//
//   logit(a) - logit(b) = sum_c (c / sigma) . gamma (W_U[a] - W_U[b])      (+ biases of the final norm and of the head)
//
// Before a softcap on the logits, where a family has one. All in float64 from the f32 values the model used.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model/tap.h"
#include "tensor/buffer.h"

namespace regard {

struct DirectEffects {
  Tensor<double, 1> embedding;       // [row]
  Tensor<double, 3> heads;           // [l][h][row]
  Tensor<double, 2> attention;       // [l][row] all heads and W_O's bias together
  Tensor<double, 2> attention_bias;  // [l][row] W_O's bias, where there is one
  Tensor<double, 2> mlp;             // [l][row]
  Tensor<double, 1> bias;            // [row] the final norm's and the head's
  // [row] the sum of embedding, attention, mlp and bias: the logit (difference) before a softcap
  Tensor<double, 1> total;
};

// Keeps what every part writes at chosen rows of a sequence.
class DirectEffectsTap final : public Tap {
 public:
  // rows: positions, not negative. Error{unsupported} for families whose parts do not add up to a logit (why_not() in
  // reading/request.h).
  DirectEffectsTap(const Model& model, std::vector<std::int64_t> rows, int sequence = 0);
  bool wants(Site site, std::int64_t layer) const override;
  void at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) override;

  // Of logit `token`, less that of `against`. Error{usage} for a row that never passed, Error{bad_input} for an id out
  // of range.
  DirectEffects effects(std::int32_t token, std::optional<std::int32_t> against = {}) const;
  // The same with a token of its own for each row.
  DirectEffects effects(std::span<const std::int32_t> tokens, std::optional<std::int32_t> against = {}) const;

  // The residual before the final norm, [row][C].
  View<const float, 2> final_residual() const { return std::as_const(final_).view(); }
  // The results included.
  static std::int64_t bytes_needed(const ModelConfig& config, std::int64_t rows);

 private:
  // The rows at `indices`, of one token.
  void add(DirectEffects& effects, std::span<const std::int64_t> indices, std::int32_t token,
           std::optional<std::int32_t> against) const;

  const Model& model_;
  std::vector<std::int64_t> rows_;
  std::multimap<std::int64_t, std::int64_t> index_of_;  // position -> its places in rows_
  int sequence_;
  std::vector<std::uint8_t> passed_;      // [row]
  Tensor<float, 2> embedding_, final_;    // [row][C]
  Tensor<float, 3> z_, attention_, mlp_;  // [l][row][H * E], [l][row][C]
};

}  // namespace regard
