// Turning rows of stored bytes into vectors whose lanes are rows: the one way the dense product reads weights. Lane r
// of every vector belongs to the r-th of kLanes rows, so one vector operation works on one k of kLanes outputs.

#if defined(REGARD_KERNELS_TURN_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_TURN_INL_H
#undef REGARD_KERNELS_TURN_INL_H
#else
#define REGARD_KERNELS_TURN_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/simd-inl.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using VU = hn::Vec<U32>;

inline constexpr std::size_t kLanes = hn::MaxLanes(F32());
static_assert(kLanes == 4 || kLanes == 8 || kLanes == 16);

// 128-bit block b of the result: the 16 bytes at rows[4 b] + offset.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const std::byte* const* rows, std::ptrdiff_t offset) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::BitCast(d,
                       hn::LoadU(hn::Full128<std::uint8_t>(), reinterpret_cast<const std::uint8_t*>(*rows) + offset));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadBlocks(half, rows + hn::MaxLanes(half), offset), LoadBlocks(half, rows, offset));
  }
}

struct Words {
  VU w0, w1, w2, w3;
};

// Lane r of w_j: the 32-bit word j (little-endian) of the 16 bytes at rows[r] + offset.
HWY_INLINE Words Turn(const std::byte* const* rows, std::ptrdiff_t offset) {
  const U32 d;
  const hn::Repartition<std::uint64_t, U32> d64;
  const VU a = LoadBlocks(d, rows, offset), b = LoadBlocks(d, rows + 1, offset);
  const VU c = LoadBlocks(d, rows + 2, offset), e = LoadBlocks(d, rows + 3, offset);
  const auto ab01 = hn::BitCast(d64, hn::InterleaveLower(d, a, b)),
             ab23 = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
  const auto ce01 = hn::BitCast(d64, hn::InterleaveLower(d, c, e)),
             ce23 = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  return {hn::BitCast(d, hn::InterleaveLower(d64, ab01, ce01)), hn::BitCast(d, hn::InterleaveUpper(d64, ab01, ce01)),
          hn::BitCast(d, hn::InterleaveLower(d64, ab23, ce23)), hn::BitCast(d, hn::InterleaveUpper(d64, ab23, ce23))};
}

// The f16 in the low half of each lane, exactly.
HWY_INLINE V HalfLow(VU words) {
  const F32 d;
#if HWY_TARGET == HWY_EMU128  // its own conversion makes infinities finite
  V r;
  for (std::size_t i = 0; i < kLanes; ++i) r.raw[i] = f32_from_f16(static_cast<std::uint16_t>(words.raw[i]));
  (void)d;
  return r;
#else
  const hn::Rebind<std::uint16_t, F32> d16;
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), hn::TruncateTo(d16, words)));
#endif
}
HWY_INLINE V HalfHigh(VU words) { return HalfLow(hn::ShiftRight<16>(words)); }

// The same 32 bits in every lane.
HWY_INLINE VU Bits(std::uint32_t bits) { return hn::Set(U32(), bits); }
HWY_INLINE V SignedToFloat(VU v) { return hn::ConvertTo(F32(), hn::BitCast(I32(), v)); }

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
