#pragma once
// A bias by the distance of key and row (Raffel et al. 2020, T5, section 2.1), as a table that any row of any pass is
// seen in: H (2 N - 1) numbers for texts of N tokens, never N x N.

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "tensor/view.h"

namespace regard {

// The bucket of key - row: half of them by exact distance, the others by its logarithm, up to `far`. Not causal: the
// upper half of all is for keys behind the row. Computed in f32 as the public implementation does.
std::int64_t relative_bucket(std::int64_t distance, bool causal, std::int64_t buckets, std::int64_t far);

class RelativeBias {
 public:
  // For rows and keys below `length`, [position, H, key]; see Mask::bias_by_position. Grows on demand.
  View<const float, 3> view(const Model& model, std::int64_t length);

 private:
  std::int64_t length_ = 0;
  std::vector<float> table_;  // [H, 2 * length - 1], distance d at length - 1 + d
};

}  // namespace regard
