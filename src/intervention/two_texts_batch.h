#pragma once
// What-ifs of one source and one target that pass together, as sequences of their own.

#include <cstdint>
#include <span>
#include <vector>

#include "intervention/edit_tap.h"
#include "intervention/two_texts.h"
#include "model/state.h"

namespace regard {

class TwoTextBatch {
 public:
  // encoded: [S, C] of the source without edits. At most `most` what-ifs at a time. All must outlive the batch.
  TwoTextBatch(const Model& model, const ModelConfig& across, std::span<const std::int32_t> source,
               std::span<const std::int32_t> target, std::int64_t row, View<const float, 2> encoded, std::int64_t most);

  struct Outcome {
    Tensor<float, 2> resid;                                   // [n, C]: `row` of the target, after the last block
    std::vector<std::vector<Receipt>> receipts[kAttentions];  // [what-if][edit]
  };
  Outcome run(std::span<const TwoTextCells> what_ifs);

 private:
  // Reads `ids` once for each of n what-ifs: [n * ids, C] after the last block.
  static Tensor<float, 2> pass(const Model& model, State& state, std::span<const std::int32_t> ids, std::int64_t n,
                               Tap& tap);
  void lay_sources(std::span<const TwoTextCells> what_ifs, Outcome& outcome);

  const Model& model_;
  const ModelConfig& across_;
  std::span<const std::int32_t> source_, target_;
  std::int64_t row_;
  View<const float, 2> encoded_;
  State state_;                  // of the decoder
  std::vector<bool> is_edited_;  // whether a sequence has a source that is not the clean one
};

}  // namespace regard
