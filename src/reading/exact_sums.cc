#include "reading/exact_sums.h"

#include <algorithm>
#include <cmath>

#include "reading/exact_sum.h"
#include "reading/tile_kernels.h"
#include "tensor/error.h"

namespace regard {
namespace {

// All bits set for the lanes that a vector loop may add; gives whether some kept lane has weights that are not numbers,
// and must be added one by one.
bool choose_lanes(const LaneGroup& lanes, const Placement& placement, std::uint32_t* keep) {
  bool careful = false;
  for (int i = 0; i < kLaneGroup; ++i) {
    keep[i] = 0;
    if (i >= lanes.count || !placement.keeps(lanes.tile, lanes.first + i)) continue;
    // A row's weights are quotients by its sum: they are all numbers if it is one.
    if (std::isfinite(lanes.tile.softmax[lanes.first + i].sum))
      keep[i] = 0xffffffffu;
    else
      careful = true;
  }
  return careful;
}

bool is_careful(const LaneGroup& lanes, const Placement& placement, const std::uint32_t* keep, int i) {
  return keep[i] == 0 && placement.keeps(lanes.tile, lanes.first + i);
}

int heads_per_group(const Problem& problem) { return static_cast<int>(problem.q.shape[1] / problem.kv_heads); }

std::int64_t kept_heads(const Placement& placement) {
  return std::count_if(placement.head.begin(), placement.head.end(), [](std::int32_t slot) { return slot >= 0; });
}

// One zeroed buffer of `size` per thread; those that are large enough stay.
void provide(std::vector<Buffer<std::int64_t>>& buffers, int threads, std::int64_t size) {
  buffers.resize(std::max<std::size_t>(buffers.size(), static_cast<std::size_t>(threads)));
  for (Buffer<std::int64_t>& buffer : buffers)
    if (buffer.size() < size) buffer = Buffer<std::int64_t>(size);
}

// Moves a thread's sum over to the shared one.
void take(std::int64_t& sum, std::int64_t& part) {
  if (part == 0) return;
  add_fixed(sum, part);
  part = 0;
}

}  // namespace

void ColumnSumReader::aim(const Placement& placement, View<std::int64_t, 2> sums) {
  placement_ = &placement;
  sums_ = sums;
}

void ColumnSumReader::begin(const Problem& problem, int threads) {
  const std::int64_t keys = problem.sequences[placement_->sequence].length;
  if (keys > sums_.shape[1] || kept_heads(*placement_) > sums_.shape[0])
    throw Error(ErrorCode::usage, fmt::format("column sums of {} keys do not fit into {}", keys, sums_.shape[1]));
  group_heads_ = heads_per_group(problem);
  provide(private_, threads, (sums_.shape[0] + 1) * sums_.shape[1]);  // one row more, for heads that are not kept
  key_end_.assign(private_.size(), 0);
}

void ColumnSumReader::tile(const WeightTile& tile, int thread) {
  const auto row_of = [&](std::int64_t slot) {
    return private_[thread].data() + slot * sums_.shape[1] + tile.key_begin;
  };
  for_each_group(tile, *placement_, [&](const LaneGroup& lanes) {
    std::uint32_t keep[kLaneGroup];
    const bool careful = choose_lanes(lanes, *placement_, keep);
    std::vector<std::int64_t*> sums(static_cast<std::size_t>(group_heads_), row_of(sums_.shape[0]));
    for (int p = 0; p < std::min(group_heads_, lanes.count); ++p) {
      const std::int32_t slot = placement_->head[tile.head[lanes.first + p]];
      if (slot >= 0) sums[p] = row_of(slot);
    }
    tile_column_sums(lanes, keep, group_heads_, sums.data());
    for (int i = 0; careful && i < lanes.count; ++i) {
      if (!is_careful(lanes, *placement_, keep, i)) continue;
      for (std::int64_t key = 0; key < tile.keys; ++key)
        add_weight(sums[i % group_heads_][key], tile.weight[key * tile.stride + lanes.first + i]);
    }
    key_end_[thread] = std::max(key_end_[thread], tile.key_begin + tile.keys);
  });
}

void ColumnSumReader::finish() {
  for (std::size_t thread = 0; thread < key_end_.size(); ++thread)
    for (std::int64_t slot = 0; slot < sums_.shape[0]; ++slot)
      for (std::int64_t key = 0; key < key_end_[thread]; ++key)
        take(sums_(slot, key), private_[thread][slot * sums_.shape[1] + key]);
}

void DiagonalReader::aim(const Placement& placement, View<std::int64_t, 2> sums) {
  placement_ = &placement;
  sums_ = sums;
}

void DiagonalReader::begin(const Problem& problem, int threads) {
  if (!problem.mask.causal && !both_sides_)
    throw Error(ErrorCode::usage, "rows may read later keys here, so distances go both ways",
                "count distances on both sides");
  const std::int64_t keys = problem.sequences[placement_->sequence].length;
  const std::int64_t least = zero_at() - (both_sides_ ? std::max<std::int64_t>(keys - 1, 0) : 0);
  rows_ = problem.rows;
  for (std::size_t r = 0; r < placement_->row.size(); ++r) {
    const std::int64_t position = rows_[r].position;
    if (placement_->row[r] >= 0 && (position < 0 || least < 0 || zero_at() + position >= sums_.shape[1]))
      throw Error(ErrorCode::usage,
                  fmt::format("distances of a row at position {} do not fit into {}", position, sums_.shape[1]));
  }
  group_heads_ = heads_per_group(problem);
  provide(private_, threads, problem.kv_heads * cells() * group_heads_);
  touched_.assign(private_.size() * static_cast<std::size_t>(problem.kv_heads), 0);
}

void DiagonalReader::tile(const WeightTile& tile, int thread) {
  const std::int64_t groups = std::ssize(touched_) / std::ssize(private_);
  const int n = group_heads_;
  for_each_group(tile, *placement_, [&](const LaneGroup& lanes) {
    std::uint32_t keep[kLaneGroup];
    choose_lanes(lanes, *placement_, keep);
    const int head = static_cast<int>(tile.head[lanes.first] - tile.kv_head * n);
    const std::int64_t position = rows_[tile.row[lanes.first]].position;
    // Lanes of rows in a row go one step along the diagonals per row: a vector step does them together.
    bool in_a_row = position >= 0 && zero_at() + position < sums_.shape[1];
    for (int i = 0; i < lanes.count; ++i) {
      const int lane = lanes.first + i;
      in_a_row = in_a_row && rows_[tile.row[lane]].position == position + (head + i) / n;
    }
    // The cell of distance 0 of the group's first head.
    std::int64_t* zero = private_[thread].data() + (tile.kv_head * cells() + kLaneGroup + zero_at()) * n;
    if (in_a_row) {
      const std::int64_t past =
          position + (head + lanes.count - 1) / n + 1 - tile.key_begin;  // the last row's next key
      tile_diagonal_sums(lanes, keep, n, both_sides_ ? tile.keys : std::min(tile.keys, past),
                         zero + (position - tile.key_begin) * n + head);
    }
    for (int i = 0; i < lanes.count; ++i)
      if (in_a_row ? is_careful(lanes, *placement_, keep, i) : placement_->keeps(tile, lanes.first + i))
        lane_by_lane(lanes, lanes.first + i, zero);
    touched_[thread * groups + tile.kv_head] = 1;
  });
}

void DiagonalReader::lane_by_lane(const LaneGroup& lanes, int lane, std::int64_t* zero) const {
  const WeightTile& tile = lanes.tile;
  const std::int64_t head = tile.head[lane] - tile.kv_head * group_heads_;
  const std::int64_t position = rows_[tile.row[lane]].position;
  for (std::int64_t key = 0; key < tile.keys; ++key) {
    const float weight = tile.weight[key * tile.stride + lane];
    if (weight != 0) add_weight(zero[(position - tile.key_begin - key) * group_heads_ + head], weight);
  }
}

void DiagonalReader::finish() {
  const std::int64_t groups = std::ssize(touched_) / std::max<std::int64_t>(std::ssize(private_), 1);
  for (std::size_t thread = 0; thread < private_.size(); ++thread) {
    for (std::size_t h = 0; h < placement_->head.size(); ++h) {
      const std::int64_t group = static_cast<std::int64_t>(h) / group_heads_;
      if (placement_->head[h] < 0 || !touched_[thread * groups + group]) continue;
      std::int64_t* part = private_[thread].data() + (group * cells() + kLaneGroup) * group_heads_ + h % group_heads_;
      for (std::int64_t o = 0; o < sums_.shape[1]; ++o) take(sums_(placement_->head[h], o), part[o * group_heads_]);
    }
  }
}

std::vector<std::int64_t> log2_edges(std::int64_t distances) {
  std::vector<std::int64_t> edges = {0};
  for (std::int64_t edge = 1; edge < distances; edge *= 2) edges.push_back(edge);
  edges.push_back(std::max<std::int64_t>(distances, 1));
  return edges;
}

}  // namespace regard
