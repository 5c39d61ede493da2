#pragma once
// Statistics that are summed across rows: they persist over passes (a prompt fed in chunks) and have the same bits for
// any threads, chunks, tiles and targets, because the sums are exact (reading/exact_sum.h).
//
//   ColumnSumReader    c_j = sum_i P_ij: how much each key was read ("heavy hitters", H2O)
//   DiagonalReader     d_o = sum_i P_i,i-o: how much was read at each distance; any distance histogram is pooled from
//   it

#include <cstdint>
#include <span>
#include <vector>

#include "reading/placement.h"
#include "tensor/buffer.h"
#include "tensor/view.h"
#include "weights/model_config.h"

namespace regard {

// sums: [kept heads, keys], the running sums, zero at first; keys must reach the longest sequence read.
class ColumnSumReader final : public Reader {
 public:
  void aim(const Placement& placement, View<std::int64_t, 2> sums);
  void begin(const Problem& problem, int threads) override;
  void tile(const WeightTile& tile, int thread) override;
  void finish() override;

 private:
  const Placement* placement_ = nullptr;
  View<std::int64_t, 2> sums_;
  int group_heads_ = 1;                        // H / G
  std::vector<Buffer<std::int64_t>> private_;  // per thread: [kept heads, keys]
  std::vector<std::int64_t> key_end_;          // per thread: keys touched
};

// sums: [kept heads, distances], of distance o = i - j at index o + (distances - 1) / 2 when `both_sides` (j > i too),
// else at index o.
class DiagonalReader final : public Reader {
 public:
  explicit DiagonalReader(bool both_sides = false) : both_sides_(both_sides) {}
  void aim(const Placement& placement, View<std::int64_t, 2> sums);
  void begin(const Problem& problem, int threads) override;
  void tile(const WeightTile& tile, int thread) override;
  void finish() override;

 private:
  std::int64_t zero_at() const { return both_sides_ ? (sums_.shape[1] - 1) / 2 : 0; }
  // Of a thread's sums, per head. A vector step may add zeros to up to a group of lanes' cells before distance index 0
  // (keys that a later row of the group sees) and behind the last.
  std::int64_t cells() const { return kLaneGroup + sums_.shape[1] + kLaneGroup; }
  void lane_by_lane(const LaneGroup& lanes, int lane, std::int64_t* zero) const;

  bool both_sides_;
  const Placement* placement_ = nullptr;
  View<std::int64_t, 2> sums_;
  std::span<const QueryRow> rows_;
  int group_heads_ = 1;
  std::vector<Buffer<std::int64_t>> private_;  // per thread: [G][cells][H / G]
  std::vector<std::uint8_t> touched_;          // per thread and G
};

// How many distances a text has: to the left, or on both sides.
inline std::int64_t distances_read(const ModelConfig& config, std::int64_t tokens) {
  return config.causal ? tokens : 2 * tokens - 1;
}

// The bins of a distance histogram: bin b holds distances [edges[b], edges[b + 1]).
std::vector<std::int64_t> log2_edges(std::int64_t distances);  // 0, 1, 2, 4, 8, ... up to `distances`

}  // namespace regard
