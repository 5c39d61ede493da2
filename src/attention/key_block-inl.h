// One block of keys and values as rows of f32 with unit stride: pointers to the rows where they lie if they are like
// that, else widened copies.

#if defined(REGARD_ATTENTION_KEY_BLOCK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_KEY_BLOCK_INL_H
#undef REGARD_ATTENTION_KEY_BLOCK_INL_H
#else
#define REGARD_ATTENTION_KEY_BLOCK_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "attention/lanes.h"
#include "attention/tile-inl.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// Room behind the last key and score, so that a tile may run over the end.
inline constexpr int kSpareKeys = 32;

// Addresses of the rows of a head, one page after the other.
inline void LocateRows(const Rows& rows, std::int64_t kv_head, std::int64_t first, int count, const std::byte** at) {
  std::int64_t page = first / rows.page_rows, in_page = first % rows.page_rows;
  for (int i = 0; i < count;) {
    const std::byte* row = rows.pages[page] + in_page * rows.row_stride + kv_head * rows.head_stride;
    const std::int64_t run = std::min<std::int64_t>(count - i, rows.page_rows - in_page);
    for (std::int64_t r = 0; r < run; ++r) at[i++] = row + r * rows.row_stride;
    ++page;
    in_page = 0;
  }
}

// Whether the rows at these addresses can be read where they are. (A mapped file promises no alignment.)
inline bool InPlace(const Rows& rows, const std::byte* const* at, int count) {
  std::uintptr_t bits = 0;
  for (int i = 0; i < count; ++i) bits |= reinterpret_cast<std::uintptr_t>(at[i]);
  return rows.dtype == DType::f32 && rows.inner_stride == sizeof(float) && bits % alignof(float) == 0;
}

inline void WidenStrided(DType dtype, const std::byte* from, std::int64_t stride, std::int64_t channels, float* to) {
  for (std::int64_t c = 0; c < channels; ++c, from += stride) {
    if (dtype == DType::f32) {
      std::memcpy(to + c, from, sizeof(float));
    } else {
      std::uint16_t half;
      std::memcpy(&half, from, sizeof(half));
      to[c] = dtype == DType::f16 ? f32_from_f16(half) : f32_from_bf16(half);
    }
  }
}

template <class Half>
inline void WidenHalf(const std::byte* from, std::int64_t channels, float* to) {
  const F32 d;
  const hn::Rebind<Half, F32> dh;
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    hn::Store(hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const Half*>(from) + c)), d, to + c);
  }
}

inline void WidenRow(const Rows& rows, const std::byte* from, std::int64_t channels, float* to) {
  // (Plain C++ for f16 on EMU128: Highway's own conversion makes infinities finite there.)
  const bool vectors = rows.inner_stride == 2 && (rows.dtype == DType::bf16 || HWY_TARGET != HWY_EMU128);
  const std::int64_t whole = rows.dtype != DType::f32 && vectors ? channels - channels % kLanes : 0;
  if (rows.dtype == DType::f16) WidenHalf<hwy::float16_t>(from, whole, to);
  if (rows.dtype == DType::bf16) WidenHalf<hwy::bfloat16_t>(from, whole, to);
  WidenStrided(rows.dtype, from + whole * rows.inner_stride, rows.inner_stride, channels - whole, to + whole);
}

// Rows of copies lie this many floats apart: not a power of two, so that they do not push each other out of the first
// cache.
constexpr std::int64_t CopyStep(std::int64_t channels) { return (channels + 15) / 16 * 16 + 16; }

// The rows at `at` as f32 in scratch [count][CopyStep(channels)]; `at` then points there.
inline void CopyRows(const Rows& rows, int count, std::int64_t channels, float* scratch, const std::byte** at) {
  for (int i = 0; i < count; ++i, scratch += CopyStep(channels)) {
    if (rows.dtype == DType::f32 && rows.inner_stride == sizeof(float)) {
      std::memcpy(scratch, at[i], static_cast<std::size_t>(channels) * sizeof(float));
    } else {
      WidenRow(rows, at[i], channels, scratch);
    }
    at[i] = reinterpret_cast<const std::byte*>(scratch);
  }
}

// Channels [channel, channel + kWidth) of each value row as one strip, zero behind `channels`.
template <int kWidth>
inline void PackStrip(const std::byte* const* v, int keys, std::int64_t channel, std::int64_t channels, float* strip) {
  const hn::FixedTag<float, 4> d4;
  const auto whole = static_cast<int>(std::min<std::int64_t>(kWidth, channels - channel));
  for (int key = 0; key < keys; ++key, strip += kWidth) {
    const float* from = reinterpret_cast<const float*>(v[key]) + channel;
    if (whole == kWidth) {
#pragma GCC unroll 4
      for (int i = 0; i < kWidth; i += 4) hn::Store(hn::LoadU(d4, from + i), d4, strip + i);
    } else {
      for (int i = 0; i < kWidth; ++i) strip[i] = i < whole ? from[i] : 0.0f;
    }
  }
}

// How many of keys [first, first + keys) are there at all.
inline int CountVisible(const Sequence& sequence, std::int64_t first, int keys) {
  if (sequence.visible.empty()) return keys;
  const auto begin = sequence.visible.begin() + first;
  return static_cast<int>(std::count_if(begin, begin + keys, [](std::uint8_t key) { return key != 0; }));
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
