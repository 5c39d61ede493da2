#include "reading/top_reads.h"

#include <algorithm>

#include "reading/tile_kernels.h"

namespace regard {
namespace {

// body(head slot, row slot) for everything this pass keeps.
template <typename Body>
void for_each_kept(const Placement& placement, Body&& body) {
  for (std::int32_t head : placement.head)
    for (std::int32_t row : placement.row)
      if (head >= 0 && row >= 0) body(head, row);
}

}  // namespace

void TopReader::aim(const Placement& placement, View<float, 3> weight, View<std::int32_t, 3> key) {
  placement_ = &placement;
  weight_ = weight;
  key_ = key;
}

void TopReader::begin(const Problem&, int) {
  const std::int64_t k = weight_.shape[2];
  for_each_kept(*placement_, [&](std::int32_t head, std::int32_t row) {
    std::fill_n(&weight_(head, row, 0), k, 0.0f);
    std::fill_n(&key_(head, row, 0), k, -1);
  });
}

void TopReader::tile(const WeightTile& tile, int) {
  for_each_group(tile, *placement_, [&](const LaneGroup& lanes) {
    TopState state[kLaneGroup];
    for (int i = 0; i < lanes.count; ++i) {
      const int lane = lanes.first + i;
      if (!placement_->keeps(tile, lane)) continue;
      const std::int32_t head = placement_->head[tile.head[lane]], row = placement_->row[tile.row[lane]];
      state[i] = {&weight_(head, row, 0), &key_(head, row, 0)};
    }
    tile_top(lanes, static_cast<int>(weight_.shape[2]), state);
  });
}

void WeightsReader::aim(const Placement& placement, View<float, 3> weight) {
  placement_ = &placement;
  weight_ = weight;
}

void WeightsReader::begin(const Problem&, int) {
  for_each_kept(*placement_, [&](std::int32_t head, std::int32_t row) {
    for (std::int64_t key = 0; key < weight_.shape[2]; ++key) weight_(head, row, key) = 0;
  });
}

void WeightsReader::tile(const WeightTile& tile, int) {
  if (!placement_->keeps(tile, 0, tile.lanes)) return;
  for (int lane = 0; lane < tile.lanes; ++lane) {
    if (!placement_->keeps(tile, lane)) continue;
    const View<float, 1> out = weight_[placement_->head[tile.head[lane]]][placement_->row[tile.row[lane]]];
    for (std::int64_t key = 0; key < tile.keys; ++key)
      out(tile.key_begin + key) = tile.weight[key * tile.stride + lane];
  }
}

void GroupReader::aim(const Placement& placement, View<float, 3> mass) {
  placement_ = &placement;
  mass_ = mass;
}

void GroupReader::begin(const Problem&, int) {
  for_each_kept(*placement_, [&](std::int32_t head, std::int32_t row) {
    for (std::int64_t g = 0; g < mass_.shape[2]; ++g) mass_(head, row, g) = 0;
  });
}

void GroupReader::tile(const WeightTile& tile, int) {
  if (tile.sequence != placement_->sequence) return;  // its keys are not those that were grouped
  // Groups of this tile's keys, each with one chain per lane over all its keys here.
  std::vector<std::int32_t> present(group_.begin() + tile.key_begin, group_.begin() + tile.key_begin + tile.keys);
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  std::erase(present, -1);
  std::vector<float> mass;
  for_each_group(tile, *placement_, [&](const LaneGroup& lanes) {
    mass.assign(present.size() * kLaneGroup, 0.0f);
    for (std::int64_t begin = 0, end; begin < tile.keys; begin = end) {  // runs of keys of one group
      const std::int32_t group = group_[tile.key_begin + begin];
      for (end = begin + 1; end < tile.keys && group_[tile.key_begin + end] == group;) ++end;
      if (group < 0) continue;
      const auto at = std::lower_bound(present.begin(), present.end(), group) - present.begin();
      tile_mass(lanes, begin, end, mass.data() + at * kLaneGroup);
    }
    for (int i = 0; i < lanes.count; ++i) {
      const int lane = lanes.first + i;
      if (!placement_->keeps(tile, lane)) continue;
      const View<float, 1> out = mass_[placement_->head[tile.head[lane]]][placement_->row[tile.row[lane]]];
      for (std::size_t g = 0; g < present.size(); ++g) out(present[g]) += mass[g * kLaneGroup + i];
    }
  });
}

void CopyReader::aim(const Placement& placement, View<std::int64_t, 1> copies) {
  placement_ = &placement;
  copies_ = copies;
}

void CopyReader::begin(const Problem& problem, int threads) {
  pass_ = *placement_;
  position_.clear();
  for (std::size_t r = 0; r < pass_.row.size(); ++r) {
    const std::int64_t position = problem.rows[r].position;
    if (pass_.row[r] < 0 || position + 1 >= std::ssize(tokens_)) {
      pass_.row[r] = -1;
      continue;
    }
    pass_.row[r] = static_cast<std::int32_t>(position_.size());
    position_.push_back(position);
  }
  const std::array<std::int64_t, 3> shape = {copies_.shape[0], std::ssize(position_), 1};
  weight_ = Tensor<float, 3>(shape);
  key_ = Tensor<std::int32_t, 3>(shape);
  top_.aim(pass_, weight_.view(), key_.view());
  top_.begin(problem, threads);
}

void CopyReader::finish() {
  for (std::int64_t h = 0; h < copies_.shape[0]; ++h) {
    for (std::size_t r = 0; r < position_.size(); ++r) {
      const std::int64_t key = key_(h, r, 0);
      if (key >= needle_begin_ && key < needle_end_ && key >= 0)
        copies_(h) += tokens_[key] == tokens_[position_[r] + 1];
    }
  }
}

}  // namespace regard
