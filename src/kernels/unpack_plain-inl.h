// Plain stored numbers -> f32, turned: out[(k - begin) * stride + r] = W[row r, k]. Rows of any length.

#if defined(REGARD_KERNELS_UNPACK_PLAIN_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_UNPACK_PLAIN_INL_H
#undef REGARD_KERNELS_UNPACK_PLAIN_INL_H
#else
#define REGARD_KERNELS_UNPACK_PLAIN_INL_H
#endif

#include <cstring>

#include "kernels/turn-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

template <class T>
HWY_INLINE T Stored(const std::byte* row, std::int64_t k) {
  T value;
  std::memcpy(&value, row + k * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// One k after the other: for the few at the end of a row that do not fill 16 bytes, and for f64.
template <class T, class Widen>
HWY_INLINE void UnpackOneByOne(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out,
                               std::size_t stride, const Widen& widen) {
  for (; begin < end; ++begin, out += stride) {
    for (std::size_t r = 0; r < kLanes; ++r) out[r] = widen(Stored<T>(rows[r], begin));
  }
}

inline void UnpackF32(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out,
                      std::size_t stride) {
  const F32 d;
  const RowPointers pointers(rows);
  for (; begin + 4 <= end; begin += 4, out += 4 * stride) {
    const Words w = Turn(pointers, begin * 4);
    hn::Store(hn::BitCast(d, w.w0), d, out);
    hn::Store(hn::BitCast(d, w.w1), d, out + stride);
    hn::Store(hn::BitCast(d, w.w2), d, out + 2 * stride);
    hn::Store(hn::BitCast(d, w.w3), d, out + 3 * stride);
  }
  UnpackOneByOne<float>(rows, begin, end, out, stride, [](float v) { return v; });
}

// Two numbers of 16 bits in each lane: `low` and `high` widen one of them.
template <class Low, class High>
HWY_INLINE void StorePairs(const Words& w, const Low& low, const High& high, float* out, std::size_t stride) {
  const F32 d;
  hn::Store(low(w.w0), d, out);
  hn::Store(high(w.w0), d, out + stride);
  hn::Store(low(w.w1), d, out + 2 * stride);
  hn::Store(high(w.w1), d, out + 3 * stride);
  hn::Store(low(w.w2), d, out + 4 * stride);
  hn::Store(high(w.w2), d, out + 5 * stride);
  hn::Store(low(w.w3), d, out + 6 * stride);
  hn::Store(high(w.w3), d, out + 7 * stride);
}

inline void UnpackBF16(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out,
                       std::size_t stride) {
  const F32 d;
  const RowPointers pointers(rows);
  const auto low = [&](VU w) HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<16>(w)); };
  const auto high = [&](VU w) HWY_ATTR { return hn::BitCast(d, hn::And(w, Bits(0xffff0000u))); };
  for (; begin + 8 <= end; begin += 8, out += 8 * stride) StorePairs(Turn(pointers, begin * 2), low, high, out, stride);
  UnpackOneByOne<std::uint16_t>(rows, begin, end, out, stride, [](std::uint16_t v) { return f32_from_bf16(v); });
}

inline void UnpackF16(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out,
                      std::size_t stride) {
  const RowPointers pointers(rows);
  const auto low = [](VU w) HWY_ATTR { return HalfLow(w); };
  const auto high = [](VU w) HWY_ATTR { return HalfHigh(w); };
  for (; begin + 8 <= end; begin += 8, out += 8 * stride) StorePairs(Turn(pointers, begin * 2), low, high, out, stride);
  UnpackOneByOne<std::uint16_t>(rows, begin, end, out, stride, [](std::uint16_t v) { return f32_from_f16(v); });
}

inline void UnpackF64(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out,
                      std::size_t stride) {
  UnpackOneByOne<double>(rows, begin, end, out, stride, [](double v) { return static_cast<float>(v); });
}

using UnpackFunction = void (*)(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out,
                                std::size_t stride);

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
