// The tiles of a narrow block: at most four lanes, as one decoded token has. A panel would leave most of a vector empty
// and need one load for every FMA, so here the vectors run along the keys (scores) and along the channels (values), and
// queries and weights are broadcast. The chains are those of the panels' tiles, number for number.

#if defined(REGARD_ATTENTION_NARROW_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_NARROW_TILE_INL_H
#undef REGARD_ATTENTION_NARROW_TILE_INL_H
#else
#define REGARD_ATTENTION_NARROW_TILE_INL_H
#endif

#include <bit>

#include "attention/key_block-inl.h"
#include "attention/tile-inl.h"
#include "kernels/turn-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// Keys of a narrow score tile: two vectors, so that eight chains run at once for four lanes.
inline constexpr int kNarrowKeys = 2 * kLanes;

// s[key][lane] for one vector of keys, whose sums lie key by key in sum[lane]; lanes behind the last repeat it.
template <int kQueries>
HWY_INLINE void StoreTurned(const V (&sum)[kQueries], V scale, float* HWY_RESTRICT s) {
  const F32 d;
  const hn::Repartition<std::uint64_t, F32> d64;
  const V a = hn::Mul(sum[0], scale), b = hn::Mul(sum[kQueries > 1 ? 1 : 0], scale);
  const V c = hn::Mul(sum[kQueries > 2 ? 2 : kQueries - 1], scale), e = hn::Mul(sum[kQueries - 1], scale);
  const auto ab01 = hn::BitCast(d64, hn::InterleaveLower(d, a, b)),
             ab23 = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
  const auto ce01 = hn::BitCast(d64, hn::InterleaveLower(d, c, e)),
             ce23 = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  HWY_ALIGN float turned[4][kLanes];  // [key % 4][key / 4][lane]
  hn::Store(hn::BitCast(d, hn::InterleaveLower(d64, ab01, ce01)), d, turned[0]);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(d64, ab01, ce01)), d, turned[1]);
  hn::Store(hn::BitCast(d, hn::InterleaveLower(d64, ab23, ce23)), d, turned[2]);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(d64, ab23, ce23)), d, turned[3]);
#pragma GCC unroll 16
  for (int key = 0; key < kLanes; ++key) {
    hn::Store(hn::LoadDup128(d, turned[key % 4] + key / 4 * 4), d, s + key * kLanes);
  }
}

// Floats from one row of a copied tile to the next: room for any number of channels, and not a power of two, so that
// rows do not push each other out of the first cache. A constant, so that one register holds all addresses of a tile.
inline constexpr std::int64_t kTileStep = 512 + 16;

// 128-bit block b of the result: four channels of row kFirst + 4 b of a copied tile.
template <int kFirst, class D>
HWY_INLINE hn::Vec<D> LoadRows(D d, const float* HWY_RESTRICT tile) {
  constexpr int kCount = static_cast<int>(hn::MaxLanes(D()));
  if constexpr (kCount == 4) {
    return hn::BitCast(d, hn::Load(hn::FixedTag<float, 4>(), tile + kFirst * kTileStep));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadRows<kFirst + kCount / 2>(half, tile), LoadRows<kFirst>(half, tile));
  }
}

// Four channels of kLanes rows from row kFirst on, turned: w_i holds channel i of each row.
template <int kFirst>
HWY_INLINE Words TurnRows(const float* HWY_RESTRICT tile) {
  const U32 d;
  return TurnVectors(LoadRows<kFirst>(d, tile), LoadRows<kFirst + 1>(d, tile), LoadRows<kFirst + 2>(d, tile),
                     LoadRows<kFirst + 3>(d, tile));
}

// s[i][lane] = scale * sum over c ascending of tile[i][c] * q[lane][c], for the kNarrowKeys keys of a copied tile.
template <int kQueries>
HWY_INLINE void NarrowScoreTile(const float* HWY_RESTRICT tile, std::int64_t channels, const float* HWY_RESTRICT q,
                                V scale, LinesAhead& ahead, std::int64_t pace, float* HWY_RESTRICT s) {
  const F32 d;
  V low[kQueries], high[kQueries];
#pragma GCC unroll 4
  for (int h = 0; h < kQueries; ++h) low[h] = high[h] = hn::Zero(d);
  std::int64_t c = 0;
  for (; c + 4 <= channels; c += 4) {
    ahead.fetch(pace);
    const Words a = TurnRows<0>(tile + c), b = TurnRows<kLanes>(tile + c);
    const V by_channel[8] = {hn::BitCast(d, a.w0), hn::BitCast(d, b.w0), hn::BitCast(d, a.w1), hn::BitCast(d, b.w1),
                             hn::BitCast(d, a.w2), hn::BitCast(d, b.w2), hn::BitCast(d, a.w3), hn::BitCast(d, b.w3)};
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int h = 0; h < kQueries; ++h) {
        const V query = hn::Set(d, q[h * channels + c + i]);
        low[h] = Fma(by_channel[2 * i], query, low[h]);
        high[h] = Fma(by_channel[2 * i + 1], query, high[h]);
      }
    }
  }
  for (; c < channels; ++c) {
    HWY_ALIGN float key[kNarrowKeys];
    for (int i = 0; i < kNarrowKeys; ++i) key[i] = tile[i * kTileStep + c];
#pragma GCC unroll 4
    for (int h = 0; h < kQueries; ++h) {
      const V query = hn::Set(d, q[h * channels + c]);
      low[h] = Fma(hn::Load(d, key), query, low[h]);
      high[h] = Fma(hn::Load(d, key + kLanes), query, high[h]);
    }
  }
  StoreTurned(low, scale, s);
  StoreTurned(high, scale, s + kLanes * kLanes);
}

// Vectors of channels of a narrow value tile: eight or more chains, in what 16 registers hold.
constexpr int NarrowVectors(int queries) { return queries == 1 ? 8 : queries == 4 ? 2 : 4; }

// sum[lane][channel] += value(key)[channel] * p[key][lane], keys ascending, for up to kNarrowKeys keys: a stretch of
// the chain of ValueTile. sum: [lane * lane_step + channel].
template <int kQueries, int kVectors, bool kCareful, class Values>
HWY_INLINE void NarrowValueTile(Values value, int keys, const float* HWY_RESTRICT p, std::int64_t lane_step,
                                LinesAhead& ahead, std::int64_t pace, float* HWY_RESTRICT sum) {
  const F32 d;
  V chain[kQueries][kVectors];
#pragma GCC unroll 4
  for (int h = 0; h < kQueries; ++h) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) chain[h][j] = hn::Load(d, sum + h * lane_step + j * kLanes);
  }
  for (int key = 0; key < keys; ++key, p += kLanes) {
    if (key % 4 == 0) ahead.fetch(pace);
    const float* HWY_RESTRICT v = value(key);
    V channel[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) channel[j] = hn::LoadU(d, v + j * kLanes);
#pragma GCC unroll 4
    for (int h = 0; h < kQueries; ++h) {
      if (kCareful && std::bit_cast<std::int32_t>(p[h]) == kMasked) continue;
      const V weight = hn::Set(d, p[h]);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) chain[h][j] = Fma(channel[j], weight, chain[h][j]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kQueries; ++h) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) hn::Store(chain[h][j], d, sum + h * lane_step + j * kLanes);
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
