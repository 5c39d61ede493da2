#pragma once
// Reads one sequence of a model while it runs: hand it to forward() or feed() as the tap. Chunks may be of any size and
// other sequences may run in the same passes: the result has the same bits (law 3), and the model's values have the
// same bits as without it (law 2).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/state.h"
#include "model/tap.h"
#include "reading/direct_effects.h"
#include "reading/mixing.h"
#include "reading/reading.h"
#include "reading/row_places.h"
#include "reading/token_places.h"
#include "reading/value_norms.h"

namespace regard {

class ReadingTap final : public Tap {
 public:
  // `tokens`: the whole sequence from position 0, also what was fed before. The model must outlive the tap.
  // Errors: as resolve().
  ReadingTap(const Model& model, const ReadingRequest& request, std::span<const std::int32_t> tokens);
  ~ReadingTap() override;

  bool wants(Site site, std::int64_t layer) const override;
  void at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) override;
  std::vector<Reader*> readers(std::int64_t layer, std::span<const Row> rows) override;

  // After the last pass, once. state: what the passes ran in, needed for flow, which takes values from its cache, and
  // for rollout, which runs the layers again; `watch` sees them run, and `edits` writes what the taps before this one
  // wrote. Error{usage} when a chosen row never passed (law 4), and for those without the state.
  Reading finish(State* state = nullptr, Tap* watch = nullptr, Tap* edits = nullptr);

 private:
  // A reader and how it is pointed at a layer's results.
  struct Attached {
    std::unique_ptr<Reader> reader;
    std::function<void(std::int64_t layer)> aim;
  };
  void attach();
  template <typename R, typename Aim>
  void attach(std::unique_ptr<R> reader, Aim aim);
  std::int64_t index_of_layer(std::int64_t layer) const;
  void keep_resid(Site site, std::int64_t layer, View<const float, 3> value);
  // The parts of finish(): reading_tap_finish.cc.
  void take_means();
  void take_sums();
  void take_norm_weighted();
  void take_answers();
  void take_flow(State* state);
  void take_rollout(State* state, Tap* watch, Tap* edits);
  void drop_what_was_not_asked();

  const Model& model_;
  std::vector<std::int32_t> tokens_;
  Reading reading_;
  TokenPlaces places_;
  std::vector<Attached> attached_;
  std::optional<RowPlaces> rows_;
  Tensor<std::int64_t, 3> column_sums_, diagonal_sums_;  // exact sums, [l][h][s], [l][h][distance]
  Tensor<std::int64_t, 2> copies_;                       // [l][h]
  std::unique_ptr<ValueNorms> norms_;
  std::unique_ptr<MixingTap> mixing_;
  std::unique_ptr<DirectEffectsTap> direct_;
  std::unique_ptr<FlowTap> flow_;
  bool keeps_resid_ = false;
};

}  // namespace regard
