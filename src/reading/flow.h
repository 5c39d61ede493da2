#pragma once
// Information-flow routes through the attention of chosen rows (Ferrando & Voita 2024, 2403.00824; ALTI, 2022): how
// much each position, and the row's own residual, brings y = resid_mid closer. y is a sum of parts,
//
//   t_j = sum_h P_h,ij f_h(x_j)  of each position j,   x_i  the residual      (and a bias of W_O, which is nobody's)
//   c = max(|y|_1 - |y - t|_1, 0), divided by the sum of all c of the row
//
// Each layer by itself. The weights of all heads of the chosen rows are kept: linear in the text.

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/state.h"
#include "model/tap.h"
#include "reading/placement.h"
#include "reading/top_reads.h"
#include "tensor/buffer.h"

namespace regard {

struct Flow {
  Tensor<float, 3> positions;  // [l][row][s]
  Tensor<float, 2> residual;   // [l][row]; with the row's positions it adds up to 1, or all are 0
};

class FlowTap final : public Tap {
 public:
  // layers, rows: chosen ones, not negative. Error{unsupported} where a norm stands between attention and the sum
  // (Gemma); one behind the sum (BERT) comes after y.
  FlowTap(const Model& model, std::int64_t tokens, std::vector<std::int64_t> layers, std::vector<std::int64_t> rows,
          int sequence = 0);
  bool wants(Site site, std::int64_t layer) const override;
  void at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) override;
  std::vector<Reader*> readers(std::int64_t layer, std::span<const Row> rows) override;

  // cache: of the state that the rows passed through.
  Flow flow(KeyValueCache& cache) const;
  // The result included.
  static std::int64_t bytes_needed(const ModelConfig& config, std::int64_t tokens, std::int64_t layers,
                                   std::int64_t rows);

 private:
  std::int64_t index_of(std::int64_t layer) const;  // -1: not wanted

  const Model& model_;
  std::vector<std::int64_t> layers_, rows_;
  Placement pass_;
  std::vector<std::int32_t> row_index_;  // [tokens]
  WeightsReader reader_;
  Tensor<float, 4> weights_;         // [l][H][row][T]
  Tensor<float, 3> before_, after_;  // [l][row][C] resid_pre, resid_mid
};

}  // namespace regard
