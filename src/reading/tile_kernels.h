#pragma once
// The vector loops of the readers. Lanes run along the vector; a lane's sum over the keys of a tile is one chain, keys
// ascending, from zero, so it has the same bits on every target and whatever lanes stand beside it.

#include <cstdint>

#include "reading/placement.h"

namespace regard {

// value[lane] for the lanes of the group; arrays have room for kLaneGroup values.

// max + log(sum): -inf for a row that saw nothing.
void tile_log_sum_exp(const LaneGroup& lanes, float* value);
// sum over keys of w (log(sum) - (score - max)) = -sum w log w. All terms are >= 0: nothing cancels.
void tile_entropy(const LaneGroup& lanes, float* value);
// exp(sink - max) / sum.
void tile_sink_share(const LaneGroup& lanes, const float* sink, float* value);
// sum over keys of w |position - key|; position: [lanes] as floats.
void tile_distance(const LaneGroup& lanes, const float* position, float* value);
// value += sum of w over keys [begin, end) of the tile.
void tile_mass(const LaneGroup& lanes, std::int64_t begin, std::int64_t end, float* value);

// Exact sums (reading/exact_sum.h) over the lanes that `keep` has all bits set for (0 for the others, kLaneGroup of
// them). Lane i's head is periodic in i with `period`. sums[p] points at the sum of the first key of the tile for heads
// of lanes p, p + period, ...
void tile_column_sums(const LaneGroup& lanes, const std::uint32_t* keep, int period, std::int64_t* const* sums);
// Lane i of key k, k < keys, is added to sums[i - k * period], up to kLaneGroup cells from there on (the surplus ones
// get 0).
void tile_diagonal_sums(const LaneGroup& lanes, const std::uint32_t* keep, int period, std::int64_t keys,
                        std::int64_t* sums);

// sums[key] += sum over lanes of factor[lane] w, each product rounded to a multiple of 2^-50: exact sums again, of
// products that are at most 1 and add up to at most a few. factor: kLaneGroup of them, 0 for lanes that do not count.
inline constexpr int kProductBits = 50;
void tile_weighted_sums(const LaneGroup& lanes, const double* factor, std::int64_t* sums);

// The largest weights of each lane so far, in falling order, equal ones by rising key.
struct TopState {
  float* weight = nullptr;      // [k], 0 where there is none yet; null: this lane is not wanted
  std::int32_t* key = nullptr;  // [k]
};
void tile_top(const LaneGroup& lanes, int k, const TopState* state);

}  // namespace regard
