#pragma once
// Where a canonical tensor (expected_tensors.h) lies in what a file stores.

#include <cstdint>
#include <string>
#include <string_view>

#include "weights/model_config.h"

namespace regard {

// Where a matrix lies in what is stored: rows are outputs.
struct TensorPart {
  std::string tensor;
  std::int64_t expert = -1;  // of a stack [experts, ...], which one
  bool turned = false;       // stored [in, out]
  // Which of its rows, in blocks that lie `step` rows apart, from row `first` on; block 0: all of them.
  std::int64_t first = 0, block = 0, step = 0;
  bool row = false;  // a vector that is stored as [1, n] (Marian's final_logits_bias)

  void take_rows(std::int64_t from, std::int64_t n) {
    first = from;
    block = step = n;
  }
};

// Rows of q, k and v where one tensor holds them one after the other.
enum class Projection { q, k, v };
void take_projection(TensorPart& part, Projection which, const ModelConfig& config);

// "blk.3.ffn_up.2.weight": layer 3, piece "ffn_up", expert 2, ".weight". Empty where it has none.
struct CanonicalName {
  explicit CanonicalName(std::string_view name);
  std::string layer, piece, expert, suffix;
};

}  // namespace regard
