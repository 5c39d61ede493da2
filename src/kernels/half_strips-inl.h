// Numbers of 16 bits, bf16 or f16, in the strips of a PackedMatrix (packed.h): number k of row r of a strip is the
// (16 k + r)-th. One row of x reads them as fast as memory gives them: nothing is turned.

#if defined(REGARD_KERNELS_HALF_STRIPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_HALF_STRIPS_INL_H
#undef REGARD_KERNELS_HALF_STRIPS_INL_H
#else
#define REGARD_KERNELS_HALF_STRIPS_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/unpack_plain-inl.h"
#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// How numbers k of kLanes rows, side by side, are widened.
struct BF16 {
  static HWY_INLINE V Widen(const std::uint16_t* at) {
    const VU low = hn::PromoteTo(U32(), hn::LoadU(hn::Rebind<std::uint16_t, U32>(), at));
    return hn::BitCast(F32(), hn::ShiftLeft<16>(low));
  }
};
struct F16 {
  static HWY_INLINE V Widen(const std::uint16_t* at) {
    return WidenHalves(hn::LoadU(hn::Rebind<std::uint16_t, F32>(), at));
  }
};

// Reads k in [begin, end) of kLanes rows to row `lane` of a strip, of which `strip` is number `begin`.
inline void ReadHalves(const std::byte* const* rows, std::int64_t begin, std::int64_t end, std::byte* strip,
                       std::int64_t lane) {
  const hn::Rebind<std::uint16_t, U32> d;
  auto* to = reinterpret_cast<std::uint16_t*>(strip) + lane;
  const auto store = [&](VU pairs) HWY_ATTR {
    hn::StoreU(hn::TruncateTo(d, pairs), d, to);
    hn::StoreU(hn::TruncateTo(d, hn::ShiftRight<16>(pairs)), d, to + kStrip);
    to += 2 * kStrip;
  };
  const RowPointers pointers(rows);
  for (; begin + 8 <= end; begin += 8) {
    const Words w = Turn(pointers, begin * 2);
    store(w.w0);
    store(w.w1);
    store(w.w2);
    store(w.w3);
  }
  for (; begin < end; ++begin, to += kStrip) {
    for (std::size_t r = 0; r < kLanes; ++r) to[r] = Stored<std::uint16_t>(rows[r], begin);
  }
}

// out[k * stride + r] = number k of row r, for k in [0, count) of the kLanes rows at `at`.
template <class Type>
void WidenHalfStrip(const std::uint16_t* at, std::int64_t count, float* out, std::size_t stride) {
  for (std::int64_t k = 0; k < count; ++k, at += kStrip, out += stride) hn::Store(Type::Widen(at), F32(), out);
}
using WidenHalvesFunction = void (*)(const std::uint16_t* at, std::int64_t count, float* out, std::size_t stride);

template <class Type, std::size_t... kRow, std::size_t... kGroup>
HWY_INLINE void ChainHalvesOver(const std::uint16_t* const* groups, std::int64_t count, const float* x,
                                std::ptrdiff_t x_stride, float* chain, std::index_sequence<kRow...> rows,
                                std::index_sequence<kGroup...>) {
  const F32 d;
  constexpr std::size_t kRows = sizeof...(kRow), kGroups = sizeof...(kGroup);
  // Every index to the sums is a constant, so that they live in registers.
  V sum[kRows][kGroups];
  ForEach(rows, [&]<std::size_t kR>(Index<kR>) HWY_ATTR { ((sum[kR][kGroup] = hn::Zero(d)), ...); });
  for (std::int64_t k = 0; k < count; ++k) {
    const V w[kGroups] = {Type::Widen(groups[kGroup] + k * kStrip)...};
    ForEach(rows, [&]<std::size_t kR>(Index<kR>) HWY_ATTR {
      const V x_k = hn::Set(d, x[static_cast<std::ptrdiff_t>(kR) * x_stride + k]);
      ((sum[kR][kGroup] = Fma(w[kGroup], x_k, sum[kR][kGroup])), ...);
    });
  }
  ForEach(rows, [&]<std::size_t kR>(Index<kR>)
                    HWY_ATTR { (hn::Store(sum[kR][kGroup], d, chain + (kR * kGroups + kGroup) * kLanes), ...); });
}

// chain[r, n] = the chain over k in [0, count) of the numbers of weight row n and of x's row r. groups: where each
// kLanes rows begin; chain: [kRows, kGroups * kLanes].
template <class Type, std::size_t kRows, std::size_t kGroups>
void ChainHalves(const std::uint16_t* const* groups, std::int64_t count, const float* x, std::ptrdiff_t x_stride,
                 float* chain) {
  ChainHalvesOver<Type>(groups, count, x, x_stride, chain, std::make_index_sequence<kRows>(),
                        std::make_index_sequence<kGroups>());
}
using ChainHalvesFunction = void (*)(const std::uint16_t* const* groups, std::int64_t count, const float* x,
                                     std::ptrdiff_t x_stride, float* chain);

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
