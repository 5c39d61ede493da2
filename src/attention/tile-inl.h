// The register tiles of panels. Lanes run along the vectors; keys and values are broadcast from their rows, so that a
// row may be anywhere in memory and every lane's sum is one FMA chain of its own. docs/attention-kernel.md is their
// contract.

#if defined(REGARD_ATTENTION_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_TILE_INL_H
#undef REGARD_ATTENTION_TILE_INL_H
#else
#define REGARD_ATTENTION_TILE_INL_H
#endif

#include <cstddef>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(F32()));

// Rows of a tile (keys of a score tile, value channels of a value tile) for a panel of `vectors` vectors. 16 registers
// hold 4 x 3 sums, 3 loads and a broadcast; 32 hold 8 x 3.
constexpr int TileRows(int vectors) { return kLanes == 16 || (kLanes == 8 && vectors == 1) ? 8 : 4; }
inline constexpr int kMaxTileRows = 8;

// s[i][lane] = scale * sum over c ascending of k[i][c] * q[c][lane], for the TileRows keys at k.
template <int kVectors>
HWY_INLINE void ScoreTile(const std::byte* const* HWY_RESTRICT k, std::int64_t channels, const float* HWY_RESTRICT q,
                          V scale, float* HWY_RESTRICT s) {
  constexpr int kRows = TileRows(kVectors);
  const F32 d;
  V sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::Zero(d);
  }
  const float* row[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) row[i] = reinterpret_cast<const float*>(k[i]);
#pragma GCC unroll 4
  for (std::int64_t c = 0; c < channels; ++c, q += kVectors * kLanes) {
    V lane[kVectors];
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) lane[j] = hn::Load(d, q + j * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V key = hn::Set(d, row[i][c]);
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) sum[i][j] = Fma(key, lane[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) hn::Store(hn::Mul(sum[i][j], scale), d, s + (i * kVectors + j) * kLanes);
  }
}

// Where a value tile finds its channels of each key: in the rows themselves, or in a strip [keys][kStride].
struct ValueRows {
  const std::byte* const* rows;
  std::int64_t channel;
  HWY_INLINE const float* operator()(int key) const { return reinterpret_cast<const float*>(rows[key]) + channel; }
};
template <int kStride>
struct ValueStrip {
  const float* strip;
  HWY_INLINE const float* operator()(int key) const { return strip + std::int64_t{key} * kStride; }
};

// A weight of this exact pattern, -0, marks a masked key for the careful chain; elsewhere it counts as 0.
inline constexpr std::int32_t kMasked = std::numeric_limits<std::int32_t>::min();

// sum[i][lane] = sum over keys ascending of value(key)[i] * p[key][lane], one FMA chain from +0. kCareful: keys marked
// as masked are left out of their lane's chain, so that 0 * NaN cannot come from what nobody may see.
template <int kVectors, bool kCareful, class Values>
HWY_INLINE void ValueTile(Values value, int keys, const float* HWY_RESTRICT p, V (&sum)[TileRows(kVectors)][kVectors]) {
  constexpr int kRows = TileRows(kVectors);
  const F32 d;
  const hn::RebindToSigned<F32> di;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::Zero(d);
  }
#pragma GCC unroll 4
  for (int key = 0; key < keys; ++key, p += kVectors * kLanes) {
    const float* HWY_RESTRICT v = value(key);
    V weight[kVectors];
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) weight[j] = hn::Load(d, p + j * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V channel = hn::Set(d, v[i]);
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) {
        const V next = Fma(channel, weight[j], sum[i][j]);
        if constexpr (kCareful) {
          const auto masked = hn::RebindMask(d, hn::Eq(hn::BitCast(di, weight[j]), hn::Set(di, kMasked)));
          sum[i][j] = hn::IfThenElse(masked, sum[i][j], next);
        } else {
          sum[i][j] = next;
        }
      }
    }
  }
}

// True if every number of a tile is finite.
template <int kRows, int kVectors>
HWY_INLINE bool AllFinite(const V (&sum)[kRows][kVectors]) {
  const F32 d;
  const V zero = hn::Zero(d);
  V seen[kVectors];  // 0, or NaN from the first number that is not finite
#pragma GCC unroll 8
  for (int j = 0; j < kVectors; ++j) {
    seen[j] = hn::Mul(sum[0][j], zero);
#pragma GCC unroll 8
    for (int i = 1; i < kRows; ++i) seen[j] = Fma(sum[i][j], zero, seen[j]);
  }
#pragma GCC unroll 8
  for (int j = 1; j < kVectors; ++j) seen[0] = hn::Add(seen[0], seen[j]);
  return hn::AllTrue(d, hn::Eq(seen[0], zero));
}

// out = fma(out, before, sum * block): the value sums of one block of keys merged into what came before.
HWY_INLINE void MergeValues(V sum, V before, V block, float* HWY_RESTRICT out) {
  const F32 d;
  hn::Store(Fma(hn::Load(d, out), before, hn::Mul(sum, block)), d, out);
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
