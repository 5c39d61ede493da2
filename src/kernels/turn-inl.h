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

inline constexpr std::int64_t kChain = 256;  // k in one chain: the canonical order, not a matter of tuning

// Where kLanes rows start. A copy of one's own: stores of vectors may alias pointers in memory, but not these.
struct RowPointers {
  const std::byte* at[kLanes];

  explicit HWY_INLINE RowPointers(const std::byte* const* rows) {
    for (std::size_t i = 0; i < kLanes; ++i) at[i] = rows[i];
  }
};

// 128-bit block b of the result: the 16 bytes at rows.at[kFirst + 4 b] + offset.
template <std::size_t kFirst, class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const RowPointers& rows, std::ptrdiff_t offset) {
  constexpr std::size_t kCount = hn::MaxLanes(D());
  if constexpr (kCount == 4) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(rows.at[kFirst]) + offset;
    return hn::BitCast(d, hn::LoadU(hn::Full128<std::uint8_t>(), bytes));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadBlocks<kFirst + kCount / 2>(half, rows, offset), LoadBlocks<kFirst>(half, rows, offset));
  }
}

// Asks for bytes [begin, end) of rows. A panel's rows are too many streams for the processor to foresee.
HWY_INLINE void Prefetch(const std::byte* const* rows, std::int64_t count, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t b = begin; b < end; b += 64) __builtin_prefetch(rows[i] + b, 0, 2);
  }
}

struct Words {
  VU w0, w1, w2, w3;
};

HWY_INLINE Words TurnVectors(VU a, VU b, VU c, VU e) {
  const U32 d;
  const hn::Repartition<std::uint64_t, U32> d64;
  const auto ab01 = hn::BitCast(d64, hn::InterleaveLower(d, a, b)),
             ab23 = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
  const auto ce01 = hn::BitCast(d64, hn::InterleaveLower(d, c, e)),
             ce23 = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  return {hn::BitCast(d, hn::InterleaveLower(d64, ab01, ce01)), hn::BitCast(d, hn::InterleaveUpper(d64, ab01, ce01)),
          hn::BitCast(d, hn::InterleaveLower(d64, ab23, ce23)), hn::BitCast(d, hn::InterleaveUpper(d64, ab23, ce23))};
}

// Lane r of w_j: the 32-bit word j (little-endian) of the 16 bytes at rows.at[r] + offset.
HWY_INLINE Words Turn(const RowPointers& rows, std::ptrdiff_t offset) {
  const U32 d;
  return TurnVectors(LoadBlocks<0>(d, rows, offset), LoadBlocks<1>(d, rows, offset), LoadBlocks<2>(d, rows, offset),
                     LoadBlocks<3>(d, rows, offset));
}

HWY_INLINE Words Turn(const std::byte* const* rows, std::ptrdiff_t offset) { return Turn(RowPointers(rows), offset); }

// The same with the bytes in another order: byte i of w_j is byte 4 i + j of the 16.
HWY_INLINE Words TurnBytes(const RowPointers& rows, std::ptrdiff_t offset) {
  alignas(16) static constexpr std::uint8_t kOrder[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const U32 d;
  const hn::Repartition<std::uint8_t, U32> d8;
  const auto order = hn::LoadDup128(d8, kOrder);
  const auto in_order = [&](VU v) HWY_ATTR { return hn::BitCast(d, hn::TableLookupBytes(hn::BitCast(d8, v), order)); };
  return TurnVectors(in_order(LoadBlocks<0>(d, rows, offset)), in_order(LoadBlocks<1>(d, rows, offset)),
                     in_order(LoadBlocks<2>(d, rows, offset)), in_order(LoadBlocks<3>(d, rows, offset)));
}

using VHalves = hn::Vec<hn::Rebind<std::uint16_t, F32>>;

// f16 as f32, exactly.
HWY_INLINE V WidenHalves(VHalves halves) {
#if HWY_TARGET == HWY_EMU128  // its own conversion makes infinities finite
  V r;
  for (std::size_t i = 0; i < kLanes; ++i) r.raw[i] = f32_from_f16(halves.raw[i]);
  return r;
#else
  return hn::PromoteTo(F32(), hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), halves));
#endif
}
// The f16 in the low and in the high half of each lane.
HWY_INLINE V HalfLow(VU words) { return WidenHalves(hn::TruncateTo(hn::Rebind<std::uint16_t, F32>(), words)); }
HWY_INLINE V HalfHigh(VU words) { return HalfLow(hn::ShiftRight<16>(words)); }

// The same 32 bits in every lane.
HWY_INLINE VU Bits(std::uint32_t bits) { return hn::Set(U32(), bits); }
HWY_INLINE V SignedToFloat(VU v) { return hn::ConvertTo(F32(), hn::BitCast(I32(), v)); }

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
