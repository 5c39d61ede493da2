// The weights of a block of lanes, tile by tile: the scores of the first pass again, now divided by the known sum.

#if defined(REGARD_ATTENTION_READ_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_READ_INL_H
#undef REGARD_ATTENTION_READ_INL_H
#else
#define REGARD_ATTENTION_READ_INL_H
#endif

#include "attention/forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// weight = exp(score - max) / sum; exactly 0 where the score is -inf. False if that is so everywhere.
template <int kVectors>
bool Normalise(int keys, const float* HWY_RESTRICT max, const float* HWY_RESTRICT sum, const float* HWY_RESTRICT s,
               float* HWY_RESTRICT weight) {
  constexpr int kWidth = kVectors * kLanes;
  const F32 d;
  const V zero = hn::Zero(d), minus_infinity = hn::Set(d, kMinusInfinity);
  V base[kVectors], share[kVectors];
#pragma GCC unroll 3
  for (int j = 0; j < kVectors; ++j) {
    const V m = hn::Load(d, max + j * kLanes);
    base[j] = hn::IfThenElse(hn::Eq(m, minus_infinity), zero, m);
    share[j] = hn::Div(hn::Set(d, 1.0f), hn::Load(d, sum + j * kLanes));
  }
  auto all_masked = hn::Eq(zero, zero);
  for (int i = 0; i < keys * kWidth; i += kWidth) {
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      const V score = hn::Load(d, s + i + j * kLanes);
      const auto masked = hn::Eq(score, minus_infinity);
      const V p = hn::Mul(Exp(d, hn::Sub(score, base[j])), share[j]);
      hn::Store(hn::IfThenZeroElse(masked, p), d, weight + i + j * kLanes);
      all_masked = hn::And(all_masked, masked);
    }
  }
  return !hn::AllTrue(d, all_masked);
}

template <int kVectors>
void WeighBlock(Desk& desk, std::size_t index, const KeyBlock& block, const RowSoftmax* softmax, float* weight,
                TileSink& sink) {
  constexpr int kWidth = kVectors * kLanes;
  const Panel& panel = desk.panels[index];
  const int from = static_cast<int>(std::clamp<std::int64_t>(panel.reach.begin - block.first, 0, block.keys));
  const int to = static_cast<int>(std::clamp<std::int64_t>(panel.reach.end - block.first, 0, block.keys));
  if (from >= to) return;
  Scores<kVectors>(desk, panel, desk.queries[index], block, from, to);
  for (int lane = 0; lane < kWidth; ++lane) {
    const RowSoftmax& of_lane = softmax[std::min(lane, panel.lanes - 1)];
    desk.before[lane] = of_lane.max;
    desk.block[lane] = of_lane.sum;
  }
  if (!Normalise<kVectors>(to - from, desk.before, desk.block, desk.s, weight)) return;
  WeightTile tile;
  tile.sequence = desk.lanes.sequence_index;
  tile.kv_head = desk.lanes.kv_head;
  tile.key_begin = block.first + from;
  tile.keys = to - from;
  tile.lanes = panel.lanes;
  tile.stride = kWidth;
  tile.weight = weight;
  tile.score = desk.s;
  tile.row = desk.lanes.row.data() + panel.first_lane;
  tile.head = desk.lanes.head.data() + panel.first_lane;
  tile.softmax = softmax;
  sink.tile(tile);
}

void Weigh(const LaneBlock& lanes, KeyRange keys, View<const RowSoftmax, 2> softmax, TileSink& sink, Scratch& scratch) {
  Desk desk(lanes, scratch);
  const hwy::AlignedFreeUniquePtr<float[]> weight = hwy::AllocateAligned<float>(std::size_t{kKeyBlock} * 3 * kLanes);
  std::vector<RowSoftmax> of_lanes;
  for (int lane = 0; lane < lanes.lanes(); ++lane) of_lanes.push_back(softmax(lanes.row[lane], lanes.head[lane]));
  KeyRange reach = lanes.reach();
  reach = {std::max(reach.begin, keys.begin), std::min(reach.end, keys.end)};
  const BlockRange blocks = blocks_of(reach);
  for (std::int64_t index = blocks.begin; index < blocks.end; ++index) {
    const KeyBlock block = desk.find(index, reach);
    if (block.keys == 0) continue;
    for (std::size_t p = 0; p < desk.panels.size(); ++p) {
      const RowSoftmax* of_panel = of_lanes.data() + desk.panels[p].first_lane;
      switch (desk.panels[p].vectors) {
        case 1:
          WeighBlock<1>(desk, p, block, of_panel, weight.get(), sink);
          break;
        case 2:
          WeighBlock<2>(desk, p, block, of_panel, weight.get(), sink);
          break;
        default:
          WeighBlock<3>(desk, p, block, of_panel, weight.get(), sink);
          break;
      }
    }
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
