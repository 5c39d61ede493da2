// One block of keys and values as rows of f32 with unit stride: pointers to the rows where they lie if they are like
// that, else widened copies, made once and used by all panels of a block of lanes.

#if defined(REGARD_ATTENTION_KEY_BLOCK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_KEY_BLOCK_INL_H
#undef REGARD_ATTENTION_KEY_BLOCK_INL_H
#else
#define REGARD_ATTENTION_KEY_BLOCK_INL_H
#endif

#include <algorithm>
#include <cstring>

#include "attention/lanes.h"
#include "attention/tile-inl.h"
#include "hwy/cache_control.h"
#include "kernels/simd-inl.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// Room behind the last key and score, so that a tile may run over the end.
inline constexpr int kSpareKeys = 32;

struct KeyBlock {
  std::int64_t first = 0;  // index of the first key here; all of them lie in one block of the grid
  int keys = 0;
  bool hidden = false;                         // Sequence::visible hides one of them
  const std::byte* k[kKeyBlock + kSpareKeys];  // [keys] rows of f32, the last one repeated behind it
  const std::byte* v[kKeyBlock];               // [keys]; unset until has_values
  bool has_values = false;
  const float* strips = nullptr;  // values as [ceil(E / rows)][kKeyBlock][rows], zero behind E; null: only the tail is
  const float* tail = nullptr;    // the last channels, those behind whole tiles, as one strip
};

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

// Rows that will be needed soon, fetched while others are computed with: then reading memory and computing take no
// longer together than the longer of them alone.
struct RowsAhead {
  const std::byte* rows[kKeyBlock];
  int count = 0;
  std::int64_t bytes = 0;

  void set(const Rows& from, std::int64_t kv_head, std::int64_t first, int keys, std::int64_t channels) {
    const std::int64_t size = from.dtype == DType::f32 ? 4 : 2;
    count = from.inner_stride == size ? std::max(keys, 0) : 0;
    bytes = channels * size;
    LocateRows(from, kv_head, first, count, rows);
  }
  // Part `index` of `parts` of each row, in bytes.
  KeyRange part(std::int64_t index, std::int64_t parts) const {
    return {bytes * index / parts, bytes * (index + 1) / parts};
  }
  HWY_INLINE void fetch(int row, int how_many, KeyRange part) const {
    const int end = std::min(count, row + how_many);
    for (; row < end; ++row) {
      for (std::int64_t at = part.begin; at < part.end; at += 64) hwy::Prefetch(rows[row] + at);
    }
  }
};

inline void WidenStrided(DType dtype, const std::byte* from, std::int64_t stride, std::int64_t channels, float* to) {
  for (std::int64_t c = 0; c < channels; ++c, from += stride) {
    std::uint16_t half;
    if (dtype == DType::f32) {
      std::memcpy(to + c, from, sizeof(float));
    } else {
      std::memcpy(&half, from, sizeof(half));
      to[c] = dtype == DType::f16 ? f32_from_f16(half) : f32_from_bf16(half);
    }
  }
}

// (Plain C++ for f16 on EMU128: Highway's own conversion makes infinities finite there.)
template <class Half>
inline void WidenHalf(const std::byte* from, std::int64_t channels, float* to) {
  const F32 d;
  const hn::Rebind<Half, F32> dh;
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    hn::Store(hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const Half*>(from) + c)), d, to + c);
  }
}

inline void WidenRow(const Rows& rows, const std::byte* from, std::int64_t channels, float* to) {
  const bool vectors = rows.inner_stride == 2 && (rows.dtype == DType::bf16 || HWY_TARGET != HWY_EMU128);
  const std::int64_t whole = rows.dtype != DType::f32 && vectors ? channels - channels % kLanes : 0;
  if (rows.dtype == DType::f16) WidenHalf<hwy::float16_t>(from, whole, to);
  if (rows.dtype == DType::bf16) WidenHalf<hwy::bfloat16_t>(from, whole, to);
  WidenStrided(rows.dtype, from + whole * rows.inner_stride, rows.inner_stride, channels - whole, to + whole);
}

// Whether rows can be read where they are. (Addresses are looked at one by one: a mapped file promises no alignment.)
inline bool InPlace(const Rows& rows) { return rows.dtype == DType::f32 && rows.inner_stride == sizeof(float); }

// Floats that WidenRows needs; rows in place need none unless one is misaligned.
constexpr std::int64_t WidenedStride(std::int64_t channels) { return (channels + 15) / 16 * 16; }

inline void FindRows(const Rows& rows, std::int64_t kv_head, std::int64_t first, int count, std::int64_t channels,
                     float* scratch, const std::byte** at) {
  LocateRows(rows, kv_head, first, count, at);
  std::uintptr_t bits = 0;
  for (int i = 0; i < count; ++i) bits |= reinterpret_cast<std::uintptr_t>(at[i]);
  if (InPlace(rows) && bits % alignof(float) == 0) return;
  for (int i = 0; i < count; ++i) {
    float* to = scratch + i * WidenedStride(channels);
    WidenRow(rows, at[i], channels, to);
    at[i] = reinterpret_cast<const std::byte*>(to);
  }
}

// Channels [channel, channel + kWidth) of each value row as one strip, zero behind `channels`.
template <int kWidth>
inline void PackStrip(const std::byte* const* v, int keys, std::int64_t channel, std::int64_t channels, float* strip) {
  const hn::FixedTag<float, 4> d4;
  const auto whole = std::min<std::int64_t>(kWidth, channels - channel);
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

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
