#pragma once
// Edits of what an encoder-decoder makes of a source: in the encoder, in the decoder, and in what the decoder reads of
// the source (intervention/placed_edit.h).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "intervention/across_tap.h"
#include "intervention/continued_edits.h"
#include "intervention/two_texts.h"
#include "model/taps.h"

namespace regard {

class ContinuedTwoTexts final : public ContinuedEdits {
 public:
  // runs: other sources, by name. The decoder's prompt is its start token. Checks first, then runs what the edits need.
  // Errors: as TwoTextExperiment.
  ContinuedTwoTexts(const Model& model, std::vector<std::int32_t> source,
                    std::map<std::string, std::vector<std::int32_t>> runs, std::vector<PlacedEdit> edits,
                    const Continuation& continuation, Progress* progress = nullptr);

  Tap& tap() override { return decoder_and_cross_; }
  Tap* source_tap() override { return cells_.changes(Attention::encoder) ? &encoder_ : nullptr; }
  std::vector<std::pair<std::string, Receipt>> receipts() const override;

 private:
  EditTap tap_of(Attention attention) const;

  TwoTextExperiment experiment_;
  TwoTextCells cells_;
  EditTap encoder_, decoder_, cross_;
  AcrossTap across_{cross_};
  Taps decoder_and_cross_{{&decoder_, &across_}};
};

}  // namespace regard
