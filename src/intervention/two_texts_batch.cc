#include "intervention/two_texts_batch.h"

#include <algorithm>

#include "intervention/across_tap.h"
#include "model/forward.h"
#include "model/layers.h"
#include "model/source.h"
#include "model/taps.h"

namespace regard {
namespace {

std::vector<std::span<const Cells>> edits_of(std::span<const TwoTextCells> what_ifs, Attention attention) {
  std::vector<std::span<const Cells>> edits;
  for (const TwoTextCells& what_if : what_ifs) edits.emplace_back(what_if.of[static_cast<int>(attention)]);
  return edits;
}

}  // namespace

TwoTextBatch::TwoTextBatch(const Model& model, const ModelConfig& across, std::span<const std::int32_t> source,
                           std::span<const std::int32_t> target, std::int64_t row, View<const float, 2> encoded,
                           std::int64_t most)
    : model_(model),
      across_(across),
      source_(source),
      target_(target),
      row_(row),
      encoded_(encoded),
      state_(model.config(), static_cast<int>(most), std::ssize(target)),
      is_edited_(static_cast<std::size_t>(most), true) {}

Tensor<float, 2> TwoTextBatch::pass(const Model& model, State& state, std::span<const std::int32_t> ids, std::int64_t n,
                                    Tap& tap) {
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < n; ++i) {
    state.cache.set_length(static_cast<int>(i), 0);
    for (std::int64_t t = 0; t < std::ssize(ids); ++t) rows.push_back({ids[t], static_cast<std::int32_t>(i), t});
  }
  Tensor<float, 2> resid({std::ssize(rows), model.config().width});
  forward(model, state, rows, resid.view(), &tap);
  return resid;
}

// Where an edit is about the encoder the source is encoded anew; everywhere else the clean one must lie.
void TwoTextBatch::lay_sources(std::span<const TwoTextCells> what_ifs, Outcome& outcome) {
  const std::int64_t n = std::ssize(what_ifs), S = std::ssize(source_);
  std::vector<std::vector<Receipt>>& receipts = outcome.receipts[static_cast<int>(Attention::encoder)];
  receipts.resize(what_ifs.size());
  std::vector<TwoTextCells> edited;
  std::vector<int> place;
  for (std::int64_t i = 0; i < n; ++i) {
    if (what_ifs[i].changes(Attention::encoder)) {
      edited.push_back(what_ifs[i]);
      place.push_back(static_cast<int>(i));
    } else if (is_edited_[i]) {
      set_source(model_, state_, encoded_, static_cast<int>(i));
      is_edited_[i] = false;
    }
  }
  if (edited.empty()) return;
  const Model& encoder = *model_.encoder();
  State state(encoder.config(), static_cast<int>(edited.size()), S);
  EditTap tap(encoder.config(), edits_of(edited, Attention::encoder));
  Tensor<float, 2> encoded = pass(encoder, state, source_, std::ssize(edited), tap);
  apply(encoder.head().final_norm, encoder.config(), encoded.view(), encoded.view());
  for (std::size_t e = 0; e < edited.size(); ++e) {
    const auto first = static_cast<std::int64_t>(e) * S;
    set_source(model_, state_, encoded.view().slice(first, first + S), place[e]);
    is_edited_[static_cast<std::size_t>(place[e])] = true;
    receipts[static_cast<std::size_t>(place[e])] = tap.receipts()[e];
  }
}

TwoTextBatch::Outcome TwoTextBatch::run(std::span<const TwoTextCells> what_ifs) {
  const std::int64_t n = std::ssize(what_ifs), T = std::ssize(target_), C = model_.config().width;
  Outcome outcome;
  lay_sources(what_ifs, outcome);
  EditTap own(model_.config(), edits_of(what_ifs, Attention::decoder));
  EditTap cross(across_, edits_of(what_ifs, Attention::cross));
  AcrossTap across(cross);
  Taps taps({&own, &across});
  const Tensor<float, 2> resid = pass(model_, state_, target_, n, taps);
  outcome.resid = Tensor<float, 2>({n, C});
  for (std::int64_t i = 0; i < n; ++i) std::copy_n(&resid(i * T + row_, 0), C, &outcome.resid(i, 0));
  outcome.receipts[static_cast<int>(Attention::decoder)] = own.receipts();
  outcome.receipts[static_cast<int>(Attention::cross)] = cross.receipts();
  return outcome;
}

}  // namespace regard
