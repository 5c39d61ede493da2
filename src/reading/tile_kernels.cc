#include "reading/tile_kernels.h"

#include <algorithm>
#include <bit>

#include "reading/exact_sum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reading/tile_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "kernels/math-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

// 1.5 * 2^(52 - kFixedBits): a double near it has an ulp of 2^-kFixedBits, so adding it rounds to such a multiple.
constexpr double kMagic = 0x1.8p12;
static_assert(52 - kFixedBits == 12);

using F64 = hn::ScalableTag<double>;
using I64 = hn::ScalableTag<std::int64_t>;
using HalfF32 = hn::Rebind<float, F64>;

// max and log(sum) of the group's rows, side by side.
struct Softmax {
  explicit Softmax(const LaneGroup& lanes) {
    const F32 d;
    for (int i = 0; i < kLaneGroup; ++i) {
      const bool real = i < lanes.count;
      max[i] = real ? lanes.tile.softmax[lanes.first + i].max : 0.0f;
      sum[i] = real ? lanes.tile.softmax[lanes.first + i].sum : 1.0f;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(lanes.count); i += hn::Lanes(d))
      hn::Store(Log(d, hn::Load(d, sum + i)), d, log_sum + i);
  }
  alignas(64) float max[kLaneGroup];
  alignas(64) float sum[kLaneGroup];
  alignas(64) float log_sum[kLaneGroup];
};

// For each lane: the chain acc = term(weight, score, key, lane, acc) over the keys of the tile. Up to four vectors of
// lanes at a time hide the latency of the chains.
template <int kVectors, class Term>
HWY_INLINE void chains(const LaneGroup& lanes, std::size_t lane, const Term& term, float* value) {
  const F32 d;
  const std::size_t n = hn::Lanes(d);
  V acc[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) acc[v] = hn::Zero(d);
  const float* weight = lanes.tile.weight + lanes.first + lane;
  const float* score = lanes.tile.score + lanes.first + lane;
  for (std::int64_t key = 0; key < lanes.tile.keys; ++key, weight += lanes.tile.stride, score += lanes.tile.stride)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      acc[v] = term(hn::LoadU(d, weight + v * n), score + v * n, key, lane + v * n, acc[v]);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) hn::StoreU(acc[v], d, value + lane + v * n);
}

template <class Term>
HWY_INLINE void all_chains(const LaneGroup& lanes, const Term& term, float* value) {
  const std::size_t n = hn::Lanes(F32()), count = static_cast<std::size_t>(lanes.count);
  for (std::size_t lane = 0; lane < count; lane += 4 * n) {
    switch ((count - lane + n - 1) / n) {
      case 1:
        chains<1>(lanes, lane, term, value);
        break;
      case 2:
        chains<2>(lanes, lane, term, value);
        break;
      case 3:
        chains<3>(lanes, lane, term, value);
        break;
      default:
        chains<4>(lanes, lane, term, value);
    }
  }
}

void LogSumExp(const LaneGroup& lanes, float* value) {
  const F32 d;
  const Softmax softmax(lanes);
  for (std::size_t i = 0; i < static_cast<std::size_t>(lanes.count); i += hn::Lanes(d))
    hn::StoreU(hn::Add(hn::Load(d, softmax.max + i), hn::Load(d, softmax.log_sum + i)), d, value + i);
}

void Entropy(const LaneGroup& lanes, float* value) {
  const F32 d;
  const Softmax softmax(lanes);
  all_chains(
      lanes,
      [&](V w, const float* score, std::int64_t, std::size_t lane, V acc) HWY_ATTR {
        const V below = hn::Sub(hn::LoadU(d, score), hn::Load(d, softmax.max + lane));
        const V minus_log = hn::Sub(hn::Load(d, softmax.log_sum + lane), below);
        // A masked key has weight 0 and score -inf; a NaN must stay.
        return Fma(w, hn::IfThenZeroElse(hn::Eq(w, hn::Zero(d)), minus_log), acc);
      },
      value);
}

void SinkShare(const LaneGroup& lanes, const float* sink, float* value) {
  const F32 d;
  const Softmax softmax(lanes);
  for (std::size_t i = 0; i < static_cast<std::size_t>(lanes.count); i += hn::Lanes(d)) {
    const V e = Exp(d, hn::Sub(hn::LoadU(d, sink + i), hn::Load(d, softmax.max + i)));
    hn::StoreU(hn::Div(e, hn::Load(d, softmax.sum + i)), d, value + i);
  }
}

void Distance(const LaneGroup& lanes, const float* position, float* value) {
  const F32 d;
  all_chains(
      lanes,
      [&](V w, const float*, std::int64_t key, std::size_t lane, V acc) HWY_ATTR {
        const V at = hn::Set(d, static_cast<float>(lanes.tile.key_begin + key));
        return Fma(w, hn::Abs(hn::Sub(hn::LoadU(d, position + lane), at)), acc);
      },
      value);
}

void Mass(const LaneGroup& lanes, std::int64_t begin, std::int64_t end, float* value) {
  const F32 d;
  const std::size_t n = hn::Lanes(d);
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes.count); lane += n) {
    const float* weight = lanes.tile.weight + lanes.first + lane + begin * lanes.tile.stride;
    V acc = hn::LoadU(d, value + lane);
    for (std::int64_t key = begin; key < end; ++key, weight += lanes.tile.stride)
      acc = hn::Add(acc, hn::LoadU(d, weight));
    hn::StoreU(acc, d, value + lane);
  }
}

// Weights [lane, lane + Lanes(F64)) as kMagic + the nearest multiple, as bits.
HWY_INLINE hn::Vec<I64> FixedBits(const float* weight, const std::uint32_t* keep) {
  const HalfF32 df;
  const F64 dd;
  const auto mask = hn::BitCast(df, hn::LoadU(hn::RebindToUnsigned<HalfF32>(), keep));
  const auto w = hn::PromoteTo(dd, hn::And(hn::LoadU(df, weight), mask));
  return hn::BitCast(I64(), hn::Add(w, hn::Set(dd, kMagic)));
}

// Where the period divides the vector: every lane of the vector of running sums belongs to one head.
void ColumnSumsInVector(const LaneGroup& lanes, const std::uint32_t* keep, int period, std::int64_t* const* sums) {
  const I64 di;
  const std::size_t n = hn::Lanes(di), count = static_cast<std::size_t>(lanes.count);
  // Each addition brings the bits of kMagic with it: start below zero by as many.
  const std::uint64_t magic = std::bit_cast<std::uint64_t>(kMagic) * ((count + n - 1) / n);
  const auto start = hn::Set(di, static_cast<std::int64_t>(0 - magic));
  HWY_ALIGN std::int64_t folded[HWY_MAX_BYTES / sizeof(std::int64_t)];
  const float* weight = lanes.tile.weight + lanes.first;
  for (std::int64_t key = 0; key < lanes.tile.keys; ++key, weight += lanes.tile.stride) {
    auto acc = start;
    for (std::size_t i = 0; i < count; i += n) acc = hn::Add(acc, FixedBits(weight + i, keep + i));
    hn::Store(acc, di, folded);
    for (std::size_t i = 0; i < n; ++i) sums[i % period][key] += folded[i];
  }
}

// Any period: the fixed-point weights of a few keys are laid out in memory first, and added row by row from there, so
// that a load never waits for the stores it would overlap.
void ColumnSumsByRow(const LaneGroup& lanes, const std::uint32_t* keep, int period, std::int64_t* const* sums) {
  constexpr std::int64_t kKeys = 8;
  constexpr std::size_t kSpare = HWY_MAX_BYTES / sizeof(std::int64_t);
  const I64 di;
  const std::size_t n = hn::Lanes(di), count = static_cast<std::size_t>(lanes.count);
  const auto magic = hn::Set(di, std::bit_cast<std::int64_t>(kMagic));
  HWY_ALIGN std::int64_t fixed[kKeys][kLaneGroup + kSpare] = {};
  HWY_ALIGN std::int64_t folded[kSpare];
  const std::size_t heads = std::min(static_cast<std::size_t>(period), count);
  for (std::int64_t first = 0; first < lanes.tile.keys; first += kKeys) {
    const std::int64_t keys = std::min(kKeys, lanes.tile.keys - first);
    for (std::int64_t k = 0; k < keys; ++k) {
      const float* weight = lanes.tile.weight + lanes.first + (first + k) * lanes.tile.stride;
      for (std::size_t i = 0; i < count; i += n)
        hn::Store(hn::Sub(FixedBits(weight + i, keep + i), magic), di, fixed[k] + i);
    }
    for (std::int64_t k = 0; k < keys; ++k) {
      for (std::size_t p = 0; p < heads; p += n) {
        auto acc = hn::Zero(di);
        for (std::size_t i = p; i < count; i += period) acc = hn::Add(acc, hn::LoadU(di, fixed[k] + i));
        hn::Store(acc, di, folded);
        for (std::size_t h = p; h < std::min(p + n, heads); ++h) sums[h][first + k] += folded[h - p];
      }
    }
  }
}

void ColumnSums(const LaneGroup& lanes, const std::uint32_t* keep, int period, std::int64_t* const* sums) {
  if (hn::Lanes(I64()) % period == 0)
    ColumnSumsInVector(lanes, keep, period, sums);
  else
    ColumnSumsByRow(lanes, keep, period, sums);
}

void DiagonalSums(const LaneGroup& lanes, const std::uint32_t* keep, int period, std::int64_t keys,
                  std::int64_t* sums) {
  const I64 di;
  const std::size_t n = hn::Lanes(di);
  const auto magic = hn::Set(di, std::bit_cast<std::int64_t>(kMagic));
  const float* weight = lanes.tile.weight + lanes.first;
  for (std::int64_t key = 0; key < keys; ++key, weight += lanes.tile.stride) {
    std::int64_t* cell = sums - key * period;
    for (std::size_t i = 0; i < static_cast<std::size_t>(lanes.count); i += n)
      hn::StoreU(hn::Add(hn::LoadU(di, cell + i), hn::Sub(FixedBits(weight + i, keep + i), magic)), di, cell + i);
  }
}

void WeightedSums(const LaneGroup& lanes, const double* factor, std::int64_t* sums) {
  constexpr double kMagicOfProducts = 0x1.8p2;
  static_assert(52 - kProductBits == 2);
  const HalfF32 df;
  const F64 dd;
  const I64 di;
  const std::size_t n = hn::Lanes(di);
  const auto magic = hn::Set(di, std::bit_cast<std::int64_t>(kMagicOfProducts));
  HWY_ALIGN std::int64_t folded[HWY_MAX_BYTES / sizeof(std::int64_t)];
  const float* weight = lanes.tile.weight + lanes.first;
  for (std::int64_t key = 0; key < lanes.tile.keys; ++key, weight += lanes.tile.stride) {
    auto acc = hn::Zero(di);
    for (std::size_t i = 0; i < static_cast<std::size_t>(lanes.count); i += n) {
      const auto w = hn::PromoteTo(dd, hn::LoadU(df, weight + i));
      const auto f = hn::LoadU(dd, factor + i);
      const auto product = hn::IfThenZeroElse(hn::Eq(f, hn::Zero(dd)), hn::Mul(w, f));  // other lanes may be anything
      acc = hn::Add(acc, hn::Sub(hn::BitCast(di, hn::Add(product, hn::Set(dd, kMagicOfProducts))), magic));
    }
    hn::Store(acc, di, folded);
    for (std::size_t i = 0; i < n; ++i) sums[key] += folded[i];
  }
}

// Puts a weight above the smallest of the k in its place. Gives the new smallest.
HWY_INLINE float Insert(const TopState& state, int k, float weight, std::int32_t key) {
  int i = k - 1;
  for (; i > 0 && state.weight[i - 1] < weight; --i) {
    state.weight[i] = state.weight[i - 1];
    state.key[i] = state.key[i - 1];
  }
  state.weight[i] = weight;
  state.key[i] = key;
  return state.weight[k - 1];
}

void Top(const LaneGroup& lanes, int k, const TopState* state) {
  const F32 d;
  const std::size_t n = hn::Lanes(d);
  const std::int64_t stride = lanes.tile.stride, keys = lanes.tile.keys;
  alignas(64) float least[kLaneGroup];
  for (int i = 0; i < kLaneGroup; ++i)
    least[i] =
        i < lanes.count && state[i].weight != nullptr ? state[i].weight[k - 1] : std::numeric_limits<float>::infinity();
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes.count); lane += n) {
    const float* weight = lanes.tile.weight + lanes.first + lane;
    const auto candidates = [&](std::int64_t key, hn::Mask<F32> above) HWY_ATTR {
      std::uint8_t bytes[8] = {};
      hn::StoreMaskBits(d, above, bytes);
      for (std::uint32_t bits = bytes[0] | bytes[1] << 8; bits != 0; bits &= bits - 1) {
        const std::size_t i = lane + std::countr_zero(bits);
        least[i] =
            Insert(state[i], k, weight[key * stride + i - lane], static_cast<std::int32_t>(lanes.tile.key_begin + key));
      }
    };
    V least_v = hn::Load(d, least + lane);
    std::int64_t key = 0;
    for (; key + 4 <= keys; key += 4) {  // most keys are below: look at four at once
      const float* w = weight + key * stride;
      const V a = hn::Max(hn::LoadU(d, w), hn::LoadU(d, w + stride));
      const V b = hn::Max(hn::LoadU(d, w + 2 * stride), hn::LoadU(d, w + 3 * stride));
      if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(hn::Max(a, b), least_v)))) continue;
      for (std::int64_t j = key; j < key + 4; ++j) {
        const auto above = hn::Gt(hn::LoadU(d, weight + j * stride), least_v);
        if (hn::AllFalse(d, above)) continue;
        candidates(j, above);
        least_v = hn::Load(d, least + lane);
      }
    }
    for (; key < keys; ++key) {
      const auto above = hn::Gt(hn::LoadU(d, weight + key * stride), least_v);
      if (hn::AllFalse(d, above)) continue;
      candidates(key, above);
      least_v = hn::Load(d, least + lane);
    }
  }
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {

HWY_EXPORT(LogSumExp);
HWY_EXPORT(Entropy);
HWY_EXPORT(SinkShare);
HWY_EXPORT(Distance);
HWY_EXPORT(Mass);
HWY_EXPORT(ColumnSums);
HWY_EXPORT(DiagonalSums);
HWY_EXPORT(WeightedSums);
HWY_EXPORT(Top);

void tile_log_sum_exp(const LaneGroup& lanes, float* value) { HWY_DYNAMIC_DISPATCH(LogSumExp)(lanes, value); }
void tile_entropy(const LaneGroup& lanes, float* value) { HWY_DYNAMIC_DISPATCH(Entropy)(lanes, value); }
void tile_sink_share(const LaneGroup& lanes, const float* sink, float* value) {
  HWY_DYNAMIC_DISPATCH(SinkShare)(lanes, sink, value);
}
void tile_distance(const LaneGroup& lanes, const float* position, float* value) {
  HWY_DYNAMIC_DISPATCH(Distance)(lanes, position, value);
}
void tile_mass(const LaneGroup& lanes, std::int64_t begin, std::int64_t end, float* value) {
  HWY_DYNAMIC_DISPATCH(Mass)(lanes, begin, end, value);
}
void tile_column_sums(const LaneGroup& lanes, const std::uint32_t* keep, int period, std::int64_t* const* sums) {
  HWY_DYNAMIC_DISPATCH(ColumnSums)(lanes, keep, period, sums);
}
void tile_diagonal_sums(const LaneGroup& lanes, const std::uint32_t* keep, int period, std::int64_t keys,
                        std::int64_t* sums) {
  HWY_DYNAMIC_DISPATCH(DiagonalSums)(lanes, keep, period, keys, sums);
}
void tile_weighted_sums(const LaneGroup& lanes, const double* factor, std::int64_t* sums) {
  HWY_DYNAMIC_DISPATCH(WeightedSums)(lanes, factor, sums);
}
void tile_top(const LaneGroup& lanes, int k, const TopState* state) { HWY_DYNAMIC_DISPATCH(Top)(lanes, k, state); }

}  // namespace regard
#endif
