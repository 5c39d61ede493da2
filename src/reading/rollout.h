#pragma once
// Attention rollout (Abnar & Zuidema 2020, section 3) of chosen rows: how much of a row comes from each position of the
// text, when every layer passes on half of itself and half of what its heads read, on average:
//
//   A_l = (mean_h P_l,h + I) / 2        r_L = e_row        r_l = r_{l+1} A_l
//
// The half that stays is the paper's, for the residual beside attention; so is that the norm behind the sum, where a
// family has one (BERT), is left out: it scales both halves alike. r_l[s] is the share of position s at the input of
// layer l; each sums to 1. The product goes from the top layer down,
// so the weights are made a second time: by running the layers again (little memory, reading/replay.h), or from queries
// that were kept (fast; [layers, T, H, D]). Both are linear in the text, and give the same bits.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/state.h"
#include "model/tap.h"
#include "reading/replay.h"
#include "tensor/buffer.h"

namespace regard {

// Keeps what the weights of a sequence are made of, pass by pass: queries and softmax of each row (the keys are in the
// cache). To be attached while the whole text is fed.
class QueriesTap final : public Tap {
 public:
  explicit QueriesTap(const Model& model, int sequence = 0);
  ~QueriesTap() override;
  std::vector<Reader*> readers(std::int64_t layer, std::span<const Row> rows) override;
  static std::int64_t bytes_needed(const ModelConfig& config, std::int64_t tokens);

  int sequence() const { return sequence_; }
  std::int64_t layers() const { return static_cast<std::int64_t>(keepers_.size()); }
  // One pass of one layer, as a problem whose keys are those of the cache now (there may be more than at the time:
  // causal rows do not see them, and a text that is read both ways passes whole). Calls use(problem, softmax).
  void each_pass(const KeyValueCache& cache, std::int64_t layer,
                 const std::function<void(const Problem&, View<const RowSoftmax, 2>)>& use) const;
  std::int64_t tokens() const;  // rows kept of the top layer, from position 0

 private:
  class Keeper;
  int sequence_;
  std::vector<std::unique_ptr<Keeper>> keepers_;  // [layers]
};

// [layers + 1][row][T]: r_0 (at the embedding) to r_L. `cache`: of the state that the tap's rows passed through. rows:
// positions; Error{usage} for one that was not kept.
Tensor<float, 3> rollout(const QueriesTap& queries, const KeyValueCache& cache, std::span<const std::int64_t> rows);

// [layers + 1][T]: of the mean of all rows, r_L = 1 / T everywhere.
Tensor<float, 2> rollout_of_mean(const QueriesTap& queries, const KeyValueCache& cache);

// The same as the first by running the layers again.
Tensor<float, 3> rollout(const Model& model, Replay& replay, std::int64_t tokens, std::span<const std::int64_t> rows);
// Beside the result and the replay.
std::int64_t rollout_bytes(std::int64_t tokens, std::int64_t rows);

}  // namespace regard
