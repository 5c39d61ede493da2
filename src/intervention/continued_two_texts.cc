#include "intervention/continued_two_texts.h"

namespace regard {

ContinuedTwoTexts::ContinuedTwoTexts(const Model& model, std::vector<std::int32_t> source,
                                     std::map<std::string, std::vector<std::int32_t>> runs,
                                     std::vector<PlacedEdit> edits, const Continuation& continuation,
                                     Progress* progress)
    : experiment_(model,
                  {.source = std::move(source),
                   .target = {model.config().decoder_start},
                   .runs = std::move(runs),
                   .edits = std::move(edits),
                   .continuation = continuation},
                  false, progress),
      cells_(experiment_.resolve(experiment_.request().edits)),
      encoder_(tap_of(Attention::encoder)),
      decoder_(tap_of(Attention::decoder)),
      cross_(tap_of(Attention::cross)) {}

EditTap ContinuedTwoTexts::tap_of(Attention attention) const {
  return EditTap(experiment_.config(attention), {std::span<const Cells>(cells_.of[static_cast<int>(attention)])});
}

std::vector<std::pair<std::string, Receipt>> ContinuedTwoTexts::receipts() const {
  const EditTap* const taps[kAttentions] = {&encoder_, &decoder_, &cross_};
  std::size_t next[kAttentions] = {};
  std::vector<std::pair<std::string, Receipt>> all;
  for (const PlacedEdit& placed : experiment_.request().edits) {
    const int a = static_cast<int>(placed.attention);
    all.emplace_back(to_string(placed), of_rows_that_ran(taps[a]->receipts()[0][next[a]++]));
  }
  return all;
}

}  // namespace regard
