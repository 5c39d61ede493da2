#include "reading/row_readers.h"

#include <algorithm>
#include <limits>

#include "reading/tile_kernels.h"

namespace regard {

void RowReader::aim(const Placement& placement, View<float, 2> out) {
  placement_ = &placement;
  out_ = out;
}

void RowReader::begin(const Problem& problem, int) {
  rows_ = problem.rows;
  sinks_ = problem.sinks;
  // Tiles come only where something is visible: say first what a row has that sees nothing.
  for (std::size_t h = 0; h < placement_->head.size(); ++h) {
    if (placement_->head[h] < 0) continue;
    for (std::int32_t slot : placement_->row)
      if (slot >= 0) out_(placement_->head[h], slot) = nothing_seen(static_cast<std::int64_t>(h));
  }
}

void RowReader::tile(const WeightTile& tile, int) {
  for_each_group(tile, *placement_, [&](const LaneGroup& lanes) {
    alignas(64) float value[kLaneGroup];
    values(lanes, value);
    for (int i = 0; i < lanes.count; ++i) {
      const int lane = lanes.first + i;
      if (!placement_->keeps(tile, lane)) continue;
      float& out = out_(placement_->head[tile.head[lane]], placement_->row[tile.row[lane]]);
      out = tiles_ == Tiles::add ? out + value[i] : value[i];
    }
  });
}

void LogSumExpReader::values(const LaneGroup& lanes, float* value) const { tile_log_sum_exp(lanes, value); }

float LogSumExpReader::nothing_seen(std::int64_t head) const {
  return sinks().empty() ? -std::numeric_limits<float>::infinity() : sinks()[head];
}

void EntropyReader::values(const LaneGroup& lanes, float* value) const { tile_entropy(lanes, value); }

void SinkShareReader::values(const LaneGroup& lanes, float* value) const {
  if (sinks().empty()) {
    std::fill_n(value, lanes.count, 0.0f);
    return;
  }
  alignas(64) float sink[kLaneGroup] = {};
  for (int i = 0; i < lanes.count; ++i) sink[i] = sinks()[lanes.tile.head[lanes.first + i]];
  tile_sink_share(lanes, sink, value);
}

float SinkShareReader::nothing_seen(std::int64_t) const { return sinks().empty() ? 0.0f : 1.0f; }

namespace {

// The weight on absolute key `key`, 0 outside the tile.
float weight_at(const LaneGroup& lanes, int i, std::int64_t key) {
  const WeightTile& tile = lanes.tile;
  const std::int64_t at = key - tile.key_begin;
  return at >= 0 && at < tile.keys ? tile.weight[at * tile.stride + lanes.first + i] : 0.0f;
}

}  // namespace

void KeyReader::values(const LaneGroup& lanes, float* value) const {
  for (int i = 0; i < lanes.count; ++i) value[i] = weight_at(lanes, i, key_);
}

void OffsetReader::values(const LaneGroup& lanes, float* value) const {
  for (int i = 0; i < lanes.count; ++i) value[i] = weight_at(lanes, i, position(lanes, i) - offset_);
}

void DistanceReader::values(const LaneGroup& lanes, float* value) const {
  alignas(64) float at[kLaneGroup] = {};
  for (int i = 0; i < lanes.count; ++i) at[i] = static_cast<float>(position(lanes, i));
  tile_distance(lanes, at, value);
}

void TokenReader::values(const LaneGroup& lanes, float* value) const {
  const std::int64_t begin = lanes.tile.key_begin - shift_, end = begin + lanes.tile.keys;
  std::span<const std::int32_t> found;  // what the row's earlier occurrences are in this tile
  for (int i = 0; i < lanes.count; ++i) {
    const bool same_row = i > 0 && lanes.tile.row[lanes.first + i] == lanes.tile.row[lanes.first + i - 1];
    if (!same_row) {
      const auto earlier = places_.earlier(position(lanes, i));
      const auto first = std::lower_bound(earlier.begin(), earlier.end(), begin);
      found = {first, std::lower_bound(first, earlier.end(), end)};
    }
    value[i] = 0;
    for (std::int32_t j : found) value[i] += weight_at(lanes, i, j + shift_);
  }
}

}  // namespace regard
