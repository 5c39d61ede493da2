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
#include "kernels/simd-inl.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

struct KeyBlock {
  std::int64_t first = 0;  // index of the first key here; all of them lie in one block of the grid
  int keys = 0;
  bool hidden = false;                       // Sequence::visible hides one of them
  const float* k[kKeyBlock + kMaxTileRows];  // [keys], the last one repeated so that a tile may run over the end
  const float* v[kKeyBlock];
  const float* strips = nullptr;  // values as [ceil(E / rows)][kKeyBlock][rows], zero behind E; null: only the tail is
  const float* tail = nullptr;    // the last E % rows channels as [kKeyBlock][rows]; null when there are none
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

template <class Half>
inline void WidenHalf(const std::byte* from, std::int64_t channels, float* to) {
  const F32 d;
  const hn::Rebind<Half, F32> dh;
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    hn::Store(hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const Half*>(from) + c)), d, to + c);
  }
}

inline void WidenRow(const Rows& rows, const std::byte* from, std::int64_t channels, float* to) {
  const std::int64_t whole = rows.dtype != DType::f32 && rows.inner_stride == 2 ? channels - channels % kLanes : 0;
  if (rows.dtype == DType::f16) WidenHalf<hwy::float16_t>(from, whole, to);
  if (rows.dtype == DType::bf16) WidenHalf<hwy::bfloat16_t>(from, whole, to);
  WidenStrided(rows.dtype, from + whole * rows.inner_stride, rows.inner_stride, channels - whole, to + whole);
}

// Whether rows can be read where they are. (Addresses are looked at one by one: a mapped file promises no alignment.)
inline bool InPlace(const Rows& rows) { return rows.dtype == DType::f32 && rows.inner_stride == sizeof(float); }

// Floats that WidenRows needs; rows in place need none unless one is misaligned.
constexpr std::int64_t WidenedStride(std::int64_t channels) { return (channels + 15) / 16 * 16; }

inline void FindRows(const Rows& rows, std::int64_t kv_head, std::int64_t first, int count, std::int64_t channels,
                     float* scratch, const float** at) {
  const std::byte* raw[kKeyBlock];
  LocateRows(rows, kv_head, first, count, raw);
  std::uintptr_t bits = 0;
  for (int i = 0; i < count; ++i) bits |= reinterpret_cast<std::uintptr_t>(raw[i]);
  const bool in_place = InPlace(rows) && bits % alignof(float) == 0;
  for (int i = 0; i < count; ++i) {
    if (in_place) {
      at[i] = reinterpret_cast<const float*>(raw[i]);
    } else {
      float* to = scratch + i * WidenedStride(channels);
      WidenRow(rows, raw[i], channels, to);
      at[i] = to;
    }
  }
}

// Channels [channel, channel + kRows) of each value row as one strip, zero behind `channels`.
template <int kRows>
inline void PackStrip(const float* const* v, int keys, std::int64_t channel, std::int64_t channels, float* strip) {
  const hn::FixedTag<float, 4> d4;
  if (channel + kRows <= channels) {
    for (int key = 0; key < keys; ++key) {
#pragma GCC unroll 2
      for (int i = 0; i < kRows; i += 4) hn::Store(hn::LoadU(d4, v[key] + channel + i), d4, strip + key * kRows + i);
    }
    return;
  }
  for (int key = 0; key < keys; ++key) {
    for (int i = 0; i < kRows; ++i) strip[key * kRows + i] = channel + i < channels ? v[key][channel + i] : 0.0f;
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
