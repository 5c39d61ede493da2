#include "intervention/overlaid_keys.h"

#include <algorithm>

namespace regard {

OverlaidKeys::OverlaidKeys(const RunRecord& clean, std::int64_t what_ifs, std::int64_t length)
    : clean_(clean),
      what_ifs_(what_ifs),
      length_(length),
      k_(static_cast<std::size_t>(what_ifs * length)),
      v_(k_.size()),
      present_(static_cast<std::size_t>(what_ifs)) {}

void OverlaidKeys::put(std::int64_t layer, std::span<const Row> rows, View<const float, 3> k, View<const float, 3> v) {
  const auto at = [](const View<const float, 3>& x, std::int64_t row) {
    return reinterpret_cast<const std::byte*>(&x(row, 0, 0));
  };
  const View<const float, 3> clean_k = clean_.at(Site::rot_k, layer), clean_v = clean_.at(Site::v, layer);
  std::fill(present_.begin(), present_.end(), 0);
  for (std::int64_t r = 0; r < std::ssize(rows); ++r) {
    const std::int64_t table = rows[r].sequence * length_;
    if (!std::exchange(present_[rows[r].sequence], 1)) {
      for (std::int64_t j = 0; j < length_; ++j) {
        k_[table + j] = at(clean_k, j);
        v_[table + j] = at(clean_v, j);
      }
    }
    k_[table + rows[r].position] = at(k, r);
    v_[table + rows[r].position] = at(v, r);
  }
}

std::vector<Sequence> OverlaidKeys::sequences(std::int64_t layer) {
  constexpr std::int64_t f = sizeof(float);
  const std::int64_t D = clean_.at(Site::rot_k, layer).shape[2], E = clean_.at(Site::v, layer).shape[2];
  std::vector<Sequence> sequences(static_cast<std::size_t>(what_ifs_));
  for (std::int64_t s = 0; s < what_ifs_; ++s) {
    sequences[s].k = {DType::f32, &k_[s * length_], 1, 0, D * f, f};
    sequences[s].v = {DType::f32, &v_[s * length_], 1, 0, E * f, f};
    if (present_[s]) sequences[s].length = length_;  // without rows nothing is read
  }
  return sequences;
}

}  // namespace regard
