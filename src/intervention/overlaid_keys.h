#pragma once
// Keys and values of many what-ifs of one text: the clean run's, with each what-if's own rows laid over them.

#include <cstdint>
#include <span>
#include <vector>

#include "intervention/run_record.h"
#include "model/blocks.h"

namespace regard {

class OverlaidKeys final : public KeyStore {
 public:
  // Sequence s of the pass is what-if s; each sees keys [0, length).
  OverlaidKeys(const RunRecord& clean, std::int64_t what_ifs, std::int64_t length);
  void put(std::int64_t layer, std::span<const Row> rows, View<const float, 3> k, View<const float, 3> v) override;
  std::vector<Sequence> sequences(std::int64_t layer) override;

 private:
  const RunRecord& clean_;
  std::int64_t what_ifs_, length_;
  std::vector<const std::byte*> k_, v_;  // [what-ifs][length]
  std::vector<std::uint8_t> present_;    // [what-ifs] has rows in this pass
};

}  // namespace regard
