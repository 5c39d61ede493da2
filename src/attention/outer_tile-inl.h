// The register tiles of the three gradients: sums over an index that runs down both factors, one of them broadcast, the
// other a row of channels in vectors. Every sum is one FMA chain of its own from +0, then added to what was there.

#if defined(REGARD_ATTENTION_OUTER_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_OUTER_TILE_INL_H
#undef REGARD_ATTENTION_OUTER_TILE_INL_H
#else
#define REGARD_ATTENTION_OUTER_TILE_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstdint>

#include "attention/backward_kernel.h"
#include "attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// Vectors of channels that a tile is wide, if there are so many: 16 registers hold 6 x 2 sums, 2 loads and a broadcast,
// 32 hold 6 x 4, which takes fewer broadcasts than 12 x 2.
inline constexpr int kWideTile = kLanes == 16 ? 4 : 2;
// Rows of a tile.
constexpr int TallTile(int vectors) { return kLanes == 16 && vectors <= 2 ? 12 : 6; }
constexpr int ShortTile(int vectors) { return kLanes == 16 && vectors <= 2 ? 8 : 4; }

// sum[i] = fma(a[i of this step], b, sum[i]) over `count` steps; a factor a that carries the mark of a masked edge is
// left out if kCareful. Row i of a is at a + i * row_stride, step n at + n * step.
template <bool kCareful, int kRows, int kVectors>
HWY_INLINE void OuterChain(const float* HWY_RESTRICT a, std::int64_t row_stride, std::int64_t step,
                           const float* HWY_RESTRICT b, std::int64_t b_step, int count, V (&sum)[kRows][kVectors]) {
  const F32 d;
#pragma GCC unroll 4
  for (int n = 0; n < count; ++n, a += step, b += b_step) {
    V channel[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) channel[j] = hn::Load(d, b + j * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const float factor = a[i * row_stride];
      if (kCareful && std::bit_cast<std::int32_t>(factor) == kMasked) continue;
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sum[i][j] = Fma(hn::Set(d, factor), channel[j], sum[i][j]);
    }
  }
}

// Weights, or their gradients, of a key block: [keys][kFactorStep], the block's lanes side by side. The step is not a
// power of two, so that keys do not push each other out of the first cache.
inline constexpr int kFactorStep = kLaneBlock + 16;

// Lanes of a panel, and which of the block's keys they look at.
struct PanelKeys {
  int first_lane, lanes;
  int from, to;
};

// Over keys: rows of the tile are lanes of one panel.
struct OverKeys {
  const float* factors;
  PanelKeys panel;
  const float* rows;  // of the block's keys
  std::int64_t step;
  template <bool kCareful, int kRows, int kVectors>
  HWY_INLINE void add(int lane, std::int64_t channel, V (&sum)[kRows][kVectors]) const {
    OuterChain<kCareful>(factors + panel.from * kFactorStep + panel.first_lane + lane, 1, kFactorStep,
                         rows + panel.from * step + channel, step, panel.to - panel.from, sum);
  }
};

// Over lanes: rows of the tile are keys. Panels at either end that look at none of the tile's keys have nothing but
// masked edges there.
struct OverLanes {
  const float* factors;
  std::span<const PanelKeys> panels;
  const float* rows;  // of the block's lanes
  std::int64_t step;
  template <bool kCareful, int kRows, int kVectors>
  HWY_INLINE void add(int key, std::int64_t channel, V (&sum)[kRows][kVectors]) const {
    const auto looks = [&](const PanelKeys& panel) { return panel.from < key + kRows && panel.to > key; };
    std::size_t begin = 0, end = panels.size();
    while (begin < end && !looks(panels[begin])) ++begin;
    while (begin < end && !looks(panels[end - 1])) --end;
    if (begin == end) return;
    const int lane = panels[begin].first_lane;
    OuterChain<kCareful>(factors + key * kFactorStep + lane, kFactorStep, 1, rows + lane * step + channel, step,
                         panels[end - 1].first_lane + panels[end - 1].lanes - lane, sum);
  }
};

template <bool kCareful, int kRows, int kVectors, class Sum>
HWY_INLINE void OuterTile(const Sum& over, int row, std::int64_t channel, float* HWY_RESTRICT to, std::int64_t step) {
  const F32 d;
  V sum[kRows][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::Zero(d);
  }
  over.template add<kCareful>(row, channel, sum);
  to += row * step + channel;
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i, to += step) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      hn::Store(hn::Add(hn::Load(d, to + j * kLanes), sum[i][j]), d, to + j * kLanes);
    }
  }
}

template <bool kCareful, int kVectors, class Sum>
HWY_NOINLINE void OuterStrip(const Sum& over, int rows, std::int64_t channel, float* to, std::int64_t step) {
  if constexpr (kCareful) {
    for (int row = 0; row < rows; ++row) OuterTile<true, 1, kVectors>(over, row, channel, to, step);
  } else {
    for (int row = 0; row < rows;) {
      constexpr int kTall = TallTile(kVectors), kShort = ShortTile(kVectors);
      const int left = rows - row;
      if (left >= kTall && left != 2 * kShort) {
        OuterTile<false, kTall, kVectors>(over, row, channel, to, step);
        row += kTall;
      } else if (left >= kShort) {
        OuterTile<false, kShort, kVectors>(over, row, channel, to, step);
        row += kShort;
      } else {
        OuterTile<false, 1, kVectors>(over, row++, channel, to, step);
      }
    }
  }
}

// to[row][channel] += the sum. Whole vectors of channels are read and written, so rows have room for them.
template <class Sum>
inline void AddOuter(bool careful, const Sum& over, int rows, std::int64_t channels, float* to, std::int64_t step) {
  for (std::int64_t channel = 0; channel < channels;) {
    const std::int64_t left = careful ? 1 : (channels - channel + kLanes - 1) / kLanes;
    const int vectors = left >= kWideTile ? kWideTile : left >= 2 ? 2 : 1;
    if (careful)
      OuterStrip<true, 1>(over, rows, channel, to, step);
    else if (vectors == kWideTile)
      OuterStrip<false, kWideTile>(over, rows, channel, to, step);
    else if (vectors == 2)
      OuterStrip<false, 2>(over, rows, channel, to, step);
    else
      OuterStrip<false, 1>(over, rows, channel, to, step);
    channel += vectors * kLanes;
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
