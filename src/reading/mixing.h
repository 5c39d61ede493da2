#pragma once
// How much a row's attention mixes in from elsewhere, against what it keeps of itself (Kobayashi et al. 2021,
// section 3.2):
//
//   mix_i = o_i - sum_h P_h,ii f_h(x_i)      r_i = ||mix_i|| / (||mix_i|| + ||sum_h P_h,ii f_h(x_i) + x_i||)
//
// with f_h(x) = v W_O^h, o_i what attention adds to the residual (a bias of W_O is part of it) and x_i the residual
// itself; a norm behind the sum (BERT) is left out, as in the paper's "AttnRes". Near 1: the row becomes what it read;
// near 0: it stays what it was. Needs only the diagonal of the pattern: O(T) memory.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model/tap.h"
#include "reading/placement.h"
#include "reading/row_readers.h"
#include "tensor/buffer.h"

namespace regard {

class MixingTap final : public Tap {
 public:
  // For every row of a sequence of `tokens`. Error{unsupported} where a norm stands between attention and the sum
  // (Gemma), so that o_i is not a sum over keys.
  // `layers`: which, empty: all.
  MixingTap(const Model& model, std::int64_t tokens, int sequence = 0, std::vector<std::int64_t> layers = {});
  bool wants(Site site, std::int64_t layer) const override;
  void at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) override;
  std::vector<Reader*> readers(std::int64_t layer, std::span<const Row> rows) override;

  // [layers][T]; NaN for rows that did not pass.
  const Tensor<float, 2>& ratio() const { return ratio_; }
  Tensor<float, 2> take_ratio() { return std::move(ratio_); }
  // Of passes of `rows` rows, beside the result.
  static std::int64_t work_bytes(const ModelConfig& config, std::int64_t rows);

 private:
  std::int64_t index_of(std::int64_t layer) const;  // -1: not wanted
  void place(std::span<const Row> rows);

  const Model& model_;
  std::int64_t tokens_;
  std::vector<std::int64_t> layers_;
  Placement pass_;          // this sequence's rows, numbered within the pass
  Tensor<float, 2> resid_;  // of the pass: [rows][C] x_i
  Tensor<float, 2> value_;  // [rows][G * E] v
  Tensor<float, 2> self_;   // [H][rows] P_ii
  OffsetReader reader_{0};
  Tensor<float, 2> ratio_;
};

}  // namespace regard
