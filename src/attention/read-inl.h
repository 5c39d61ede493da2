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

// weight = exp(score - max) / sum; exactly 0 where the score is -inf. False if that is so in all of the first `lanes`
// lanes.
template <int kVectors>
bool Normalise(int lanes, int keys, const float* HWY_RESTRICT max, const float* HWY_RESTRICT sum,
               const float* HWY_RESTRICT s, float* HWY_RESTRICT weight) {
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
  // 1 in the lanes that count, and what of it was met at keys that are not masked.
  V counted[kVectors], seen[kVectors];
#pragma GCC unroll 3
  for (int j = 0; j < kVectors; ++j) {
    const V lane = hn::Iota(d, static_cast<float>(j * kLanes));
    counted[j] = hn::IfThenElseZero(hn::Lt(lane, hn::Set(d, static_cast<float>(lanes))), hn::Set(d, 1.0f));
    seen[j] = zero;
  }
  for (int i = 0; i < keys * kWidth; i += kWidth) {
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      const V score = hn::Load(d, s + i + j * kLanes);
      const auto masked = hn::Eq(score, minus_infinity);
      const V p = hn::Mul(Exp(d, hn::Sub(score, base[j])), share[j]);
      hn::Store(hn::IfThenZeroElse(masked, p), d, weight + i + j * kLanes);
      seen[j] = hn::IfThenElse(masked, seen[j], counted[j]);
    }
  }
  bool any = false;
  for (int j = 0; j < kVectors; ++j) any |= !hn::AllTrue(d, hn::Eq(seen[j], zero));
  return any;
}

// Hands out weights and scores of keys [first, first + keys) for a panel. softmax: [lanes of the block].
template <int kVectors>
void HandOut(const LaneBlock& lanes, const Panel& panel, const RowSoftmax* softmax, std::int64_t first, int keys,
             const float* s, float* weight, TileSink& sink) {
  constexpr int kWidth = kVectors * kLanes;
  softmax += panel.first_lane;
  HWY_ALIGN float max[kWidth];
  HWY_ALIGN float sum[kWidth];
  for (int lane = 0; lane < kWidth; ++lane) {
    max[lane] = softmax[std::min(lane, panel.lanes - 1)].max;
    sum[lane] = softmax[std::min(lane, panel.lanes - 1)].sum;
  }
  if (!Normalise<kVectors>(panel.lanes, keys, max, sum, s, weight)) return;
  WeightTile tile;
  tile.sequence = lanes.sequence_index;
  tile.kv_head = lanes.kv_head;
  tile.key_begin = first;
  tile.keys = keys;
  tile.lanes = panel.lanes;
  tile.stride = kWidth;
  tile.weight = weight;
  tile.score = s;
  tile.row = lanes.row.data() + panel.first_lane;
  tile.head = lanes.head.data() + panel.first_lane;
  tile.softmax = softmax;
  sink.tile(tile);
}

template <int kVectors>
void WeighPanel(Desk& desk, std::size_t index, const RowSoftmax* softmax, float* weight, TileSink& sink) {
  const auto [from, to] = desk.seen_by(desk.panels[index]);
  if (from >= to) return;
  PanelScores<kVectors>(desk, index, from, to);
  HandOut<kVectors>(desk.lanes, desk.panels[index], softmax, desk.first + from, to - from, desk.s, weight, sink);
}

inline void WeighBlock(Desk& desk, const std::vector<RowSoftmax>& softmax, float* weight, TileSink& sink) {
  for (std::size_t p = 0; p < desk.panels.size(); ++p) {
    if (desk.panels[p].vectors == 1) WeighPanel<1>(desk, p, softmax.data(), weight, sink);
    if (desk.panels[p].vectors == 2) WeighPanel<2>(desk, p, softmax.data(), weight, sink);
    if (desk.panels[p].vectors == 3) WeighPanel<3>(desk, p, softmax.data(), weight, sink);
  }
}

inline void WeighBlock(NarrowDesk& desk, const std::vector<RowSoftmax>& softmax, float* weight, TileSink& sink) {
  NarrowScores(desk, desk.lines_ahead(desk.sequence.k, desk.next_k, desk.next_keys, desk.channels));
  const RowSoftmax* of_block = softmax.data();
  for (std::size_t b = 0; b < desk.blocks.size(); ++b) {
    HandOut<1>(desk.blocks[b], desk.panels[b], of_block, desk.first, desk.keys, desk.s[b], weight, sink);
    of_block += desk.panels[b].lanes;
  }
}

inline void Weigh(std::span<const LaneBlock> blocks, KeyRange keys, View<const RowSoftmax, 2> softmax, TileSink& sink,
                  Scratch& scratch) {
  WithDesk(blocks, scratch, [&](auto& desk) {
    const hwy::AlignedFreeUniquePtr<float[]> weight = hwy::AllocateAligned<float>(std::size_t{kKeyBlock} * 3 * kLanes);
    std::vector<RowSoftmax> of_lanes;
    for (const LaneBlock& block : blocks) {
      for (int lane = 0; lane < block.lanes(); ++lane) of_lanes.push_back(softmax(block.row[lane], block.head[lane]));
    }
    KeyRange reach = reach_of(blocks);
    reach = {std::max(reach.begin, keys.begin), std::min(reach.end, keys.end)};
    const BlockRange range = blocks_of(reach);
    for (std::int64_t index = range.begin; index < range.end; ++index) {
      if (desk.find(index, reach)) WeighBlock(desk, of_lanes, weight.get(), sink);
    }
  });
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
