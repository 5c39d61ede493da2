// Weights times values of a panel and one block of keys, merged into what the panel has seen.

#if defined(REGARD_ATTENTION_VALUES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_VALUES_INL_H
#undef REGARD_ATTENTION_VALUES_INL_H
#else
#define REGARD_ATTENTION_VALUES_INL_H
#endif

#include <bit>

#include "attention/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// Weights again, with masked keys marked: a tile was not finite, so either something not finite is visible, or a masked
// key holds it and 0 * NaN got in. The careful chain tells them apart by the marks.
template <int kVectors>
HWY_NOINLINE void MarkMasked(const Desk& desk, const Panel& panel, const float* q, const KeyBlock& block, int from,
                             int to) {
  Scores<kVectors>(desk, panel, q, block, from, to);
  Exponentiate<kVectors, true>(to - from, desk.s);
}

template <int kVectors>
void AddPanelValues(const Desk& desk, std::size_t index, const KeyBlock& block, int from, int to, const State& state) {
  constexpr int kRows = TileRows(kVectors);
  const F32 d;
  bool marked = false;
  const auto add = [&](auto values, std::int64_t channel) HWY_ATTR {
    V sum[kRows][kVectors];
    ValueTile<kVectors, false>(values, to - from, desk.s, sum);
    if (HWY_UNLIKELY(!AllFinite(sum))) {
      if (!marked) MarkMasked<kVectors>(desk, desk.panels[index], desk.queries[index], block, from, to);
      marked = true;
      ValueTile<kVectors, true>(values, to - from, desk.s, sum);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) {
        MergeValues(sum[i][j], hn::Load(d, desk.before + j * kLanes), hn::Load(d, desk.block + j * kLanes),
                    state.out + ((channel + i) * kVectors + j) * kLanes);
      }
    }
  };
  const std::int64_t channels = desk.value_channels;
  std::int64_t channel = 0;
  if (block.strips != nullptr) {
    const float* strip = block.strips + from * kRows;
    for (; channel < channels; channel += kRows, strip += kKeyBlock * kRows) add(ValueStrip<kRows>{strip}, channel);
    return;
  }
  for (; channel + kRows <= channels; channel += kRows) add(ValueRows{block.v + from, channel}, channel);
  if (channel < channels) add(ValueStrip<kRows>{block.tail + from * kRows}, channel);
}

template <int kQueries>
void AddNarrowValues(const Desk& desk, const KeyBlock& block, int from, int to, const State& state) {
  const F32 d;
  bool marked = false;
  const std::int64_t channels = desk.value_channels;
  const auto add = [&]<int kVectors>(auto values, std::int64_t channel,
                                     std::integral_constant<int, kVectors>) HWY_ATTR {
    V sum[kQueries][kVectors];
    const KeyRange ahead{desk.ahead.bytes * channel / channels,
                         std::min(desk.ahead.bytes, desk.ahead.bytes * (channel + kVectors * kLanes) / channels)};
    NarrowValueTile<kQueries, kVectors, false>(values, to - from, desk.s, desk.ahead, ahead, sum);
    if (HWY_UNLIKELY(!AllFinite(sum))) {
      if (!marked) MarkMasked<1>(desk, desk.panels[0], desk.queries[0], block, from, to);
      marked = true;
      NarrowValueTile<kQueries, kVectors, true>(values, to - from, desk.s, desk.ahead, {}, sum);
    }
#pragma GCC unroll 4
    for (int h = 0; h < kQueries; ++h) {
      const V before = hn::Set(d, desk.before[h]), factor = hn::Set(d, desk.block[h]);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        MergeValues(sum[h][j], before, factor, state.out + h * state.lane_step + channel + j * kLanes);
      }
    }
  };
  constexpr int kMany = NarrowVectors(kQueries);
  std::int64_t channel = 0;
  for (; channel + kMany * kLanes <= channels; channel += kMany * kLanes) {
    add(ValueRows{block.v + from, channel}, channel, std::integral_constant<int, kMany>());
  }
  for (; channel + kLanes <= channels; channel += kLanes) {
    add(ValueRows{block.v + from, channel}, channel, std::integral_constant<int, 1>());
  }
  if (channel < channels)
    add(ValueStrip<kLanes>{block.tail + from * kLanes}, channel, std::integral_constant<int, 1>());
}

template <int kVectors>
void AddValues(const Desk& desk, std::size_t index, const KeyBlock& block, int from, int to, const State& state) {
  if (kVectors > 1 || !desk.narrow) return AddPanelValues<kVectors>(desk, index, block, from, to, state);
  switch (desk.panels[index].lanes) {
    case 1:
      return AddNarrowValues<1>(desk, block, from, to, state);
    case 2:
      return AddNarrowValues<2>(desk, block, from, to, state);
    case 3:
      return AddNarrowValues<3>(desk, block, from, to, state);
    default:
      return AddNarrowValues<4>(desk, block, from, to, state);
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
