// The canonical order of a sum over channels, and vectors at the end of a row. Included once per target, after
// simd-inl.h.
//
// Channels are taken in blocks of 4096, anchored at channel 0; the blocks' sums are added in order. (A row of the model
// is one block. The vocabulary is several: one chain of thousands would lose the last digits of a log-sum-exp.) Within
// a block, partial sum j (0 <= j < 16) starts at +0 and takes the channels c with c mod 16 == j, ascending, in one
// chain. Channels past the end count as +0. The 16 partials are then folded in halves:
//   s8[j] = s[j] + s[j + 8], s4[j] = s8[j] + s8[j + 4], s2[j] = s4[j] + s4[j + 2], sum = s2[0] + s2[1].
// A group of 16 channels is 1, 2 or 4 vectors of 16, 8 or 4 lanes, so every target makes the same sums in the same
// order.

#if defined(REGARD_KERNELS_CHANNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_CHANNELS_INL_H
#undef REGARD_KERNELS_CHANNELS_INL_H
#else
#define REGARD_KERNELS_CHANNELS_INL_H
#endif

#include <cmath>
#include <cstring>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// The last n channels of a row, fewer than a vector has lanes; `fill` in the other lanes. Touches nothing past them.
HWY_INLINE V LoadTail(F32 d, const float* x, std::int64_t n, float fill) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(hn::Set(d, fill), d, lanes);
  std::memcpy(lanes, x, static_cast<std::size_t>(n) * sizeof(float));
  return hn::Load(d, lanes);
}
HWY_INLINE void StoreTail(V v, F32 d, float* y, std::int64_t n) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  std::memcpy(y, lanes, static_cast<std::size_t>(n) * sizeof(float));
}

// visit(c, whole): `c` is the first channel of a vector; `lanes` how many of its lanes are channels (all but at the
// end).
template <class Visit>
HWY_INLINE void ForVectors(std::int64_t n, const Visit& visit) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(F32()));
  std::int64_t c = 0;
  for (; c + lanes <= n; c += lanes) visit(c, lanes);
  if (c < n) visit(c, n - c);
}
HWY_INLINE V LoadChannels(F32 d, const float* x, std::int64_t lanes, float fill = 0) {
  return lanes == static_cast<std::int64_t>(hn::Lanes(d)) ? hn::LoadU(d, x) : LoadTail(d, x, lanes, fill);
}
HWY_INLINE void StoreChannels(V v, F32 d, float* y, std::int64_t lanes) {
  if (lanes == static_cast<std::int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, y);
  } else {
    StoreTail(v, d, y, lanes);
  }
}

// Sum over channels [begin, end), one block of the canonical order, of what `step` adds: partial = step(partial, c,
// lanes) for one vector of channels, where lanes past `lanes` must be given +0.
template <class Step>
HWY_INLINE float SumBlock(std::int64_t begin, std::int64_t end, const Step& step) {
  const F32 d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(F32()));
  static_assert(16 % kLanes == 0, "a group of 16 channels must be whole vectors");
  constexpr int kVectors = 16 / kLanes;
  V partial[kVectors];
  for (int v = 0; v < kVectors; ++v) partial[v] = hn::Zero(d);
  std::int64_t c = begin;
  for (; c + 16 <= end; c += 16) {
    for (int v = 0; v < kVectors; ++v) partial[v] = step(partial[v], c + v * kLanes, std::int64_t{kLanes});
  }
  for (int v = 0; v < kVectors; ++v) {
    const std::int64_t left = end - (c + v * kLanes);
    if (left > 0) partial[v] = step(partial[v], c + v * kLanes, HWY_MIN(left, std::int64_t{kLanes}));
  }
  HWY_ALIGN float s[16];
  for (int v = 0; v < kVectors; ++v) hn::Store(partial[v], d, s + v * kLanes);
  for (int half = 8; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) s[j] += s[j + half];
  }
  return s[0];
}

inline constexpr std::int64_t kChannelBlock = 4096;

// Sum over channels [0, n), in the order above.
template <class Step>
HWY_INLINE float SumChannels(std::int64_t n, const Step& step) {
  float sum = SumBlock(0, HWY_MIN(n, kChannelBlock), step);
  for (std::int64_t begin = kChannelBlock; begin < n; begin += kChannelBlock)
    sum += SumBlock(begin, HWY_MIN(n, begin + kChannelBlock), step);
  return sum;
}

// sqrt(mean_c v_c^2 + eps) of the vectors of channels that values(c, lanes) gives, 0 in lanes past the end. Squares of
// finite numbers may be too large for f32 where their root is not: then they are taken of 2^-80 v, beside which eps is
// nothing. Without it such a row would be divided by infinity, and 0 is a wrong answer that looks like a right one.
template <class Values>
HWY_INLINE float RootOfMeanSquare(std::int64_t channels, float eps, const Values& values) {
  const auto mean = [&](float factor) HWY_ATTR {
    const V factors = hn::Set(F32(), factor);
    const float sum = SumChannels(channels, [&](V partial, std::int64_t c, std::int64_t lanes) HWY_ATTR {
      const V v = hn::Mul(values(c, lanes), factors);
      return Fma(v, v, partial);
    });
    return sum / static_cast<float>(channels);
  };
  const float squares = mean(1);  // to the bit what it is without the factor
  if (!std::isinf(squares)) return std::sqrt(squares + eps);
  constexpr float kSmall = 0x1p-80f;
  return std::sqrt(mean(kSmall)) / kSmall;
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
