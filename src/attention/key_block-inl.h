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

// One row as f32, from wherever it lies.
HWY_INLINE void CopyRow(const Rows& rows, bool in_place, const std::byte* from, std::int64_t channels,
                        float* HWY_RESTRICT to) {
  if (!in_place) return WidenRow(rows, from, channels, to);
  const F32 d;
  const float* HWY_RESTRICT numbers = reinterpret_cast<const float*>(from);
  std::int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) hn::StoreU(hn::LoadU(d, numbers + c), d, to + c);
  for (; c < channels; ++c) to[c] = numbers[c];
}

// Rows of copies lie this many floats apart: not a power of two, so that they do not push each other out of the first
// cache.
constexpr std::int64_t CopyStep(std::int64_t channels) { return (channels + 15) / 16 * 16 + 16; }

// The rows at `at` as f32 in scratch [count][CopyStep(channels)]; `at` then points there.
inline void CopyRows(const Rows& rows, bool in_place, int count, std::int64_t channels, float* scratch,
                     const std::byte** at) {
  for (int i = 0; i < count; ++i, scratch += CopyStep(channels)) {
    CopyRow(rows, in_place, at[i], channels, scratch);
    at[i] = reinterpret_cast<const std::byte*>(scratch);
  }
}

// Floats from one strip of kWidth channels to the next: room for a block of keys, and not a power of two.
constexpr std::int64_t StripStep(int width) { return kKeyBlock * width + 16; }

// Channels [channel, channels) of each value row as strips [ceil(channels / kWidth)][StripStep(kWidth)], zero behind
// the last. Four rows at a time, so that rows are read and strips written in whole cache lines.
template <int kWidth>
inline void PackStrips(const std::byte* const* v, int keys, std::int64_t channel, std::int64_t channels,
                       float* strips) {
  const hn::FixedTag<float, 4> d4;
  for (int first = 0; first < keys; first += 4) {
    const int end = std::min(first + 4, keys);
    float* strip = strips;
    std::int64_t c = channel;
    for (; c + kWidth <= channels; c += kWidth, strip += StripStep(kWidth)) {
      for (int key = first; key < end; ++key) {
        const float* from = reinterpret_cast<const float*>(v[key]) + c;
#pragma GCC unroll 4
        for (int i = 0; i < kWidth; i += 4) hn::Store(hn::LoadU(d4, from + i), d4, strip + key * kWidth + i);
      }
    }
    if (c == channels) continue;
    for (int key = first; key < end; ++key) {
      const float* from = reinterpret_cast<const float*>(v[key]) + c;
      for (int i = 0; i < kWidth; ++i) strip[key * kWidth + i] = c + i < channels ? from[i] : 0.0f;
    }
  }
}

// Cache lines that will be needed soon, fetched in the order in which they lie in memory while others are computed
// with: then reading memory and computing take no longer together than the longer of them alone.
struct LinesAhead {
  const std::byte* const* rows = nullptr;  // [count]
  int count = 0, row = 0;
  std::int64_t heads = 0, head = 0, head_stride = 0;  // every row of one head, then of the next
  std::int64_t bytes = 0, at = 0;                     // of a head's row

  LinesAhead() = default;
  // Rows of one head. Strided channels are not fetched: that is a case for tests and small inputs.
  LinesAhead(const Rows& from, const std::byte* const* rows, int how_many, std::int64_t channels)
      : rows(rows), heads(1) {
    const std::int64_t size = from.dtype == DType::f32 ? 4 : 2;
    bytes = channels * size;
    count = from.inner_stride == size ? how_many : 0;
    if (count == 0) heads = 0;
  }

  HWY_INLINE void fetch(std::int64_t lines) {
    while (lines > 0 && head < heads) {
      const std::byte* from = rows[row] + head * head_stride + at;
      const std::int64_t run = std::min(lines, (bytes - at + 63) / 64);
      // Into the second cache: the first has no room for what is not needed at once.
      for (std::int64_t line = 0; line < run; ++line) __builtin_prefetch(from + line * 64, 0, 2);
      lines -= run;
      at += run * 64;
      if (at < bytes) return;
      at = 0;
      if (++row < count) continue;
      row = 0;
      ++head;
    }
  }
  // Lines per step, to be through after `steps` of them.
  std::int64_t pace(std::int64_t steps) const { return (count * heads * ((bytes + 63) / 64) + steps - 1) / steps; }
};

// How many of keys [first, first + keys) are there at all.
inline int CountVisible(const Sequence& sequence, std::int64_t first, int keys) {
  if (sequence.visible.empty()) return keys;
  const auto begin = sequence.visible.begin() + first;
  return static_cast<int>(std::count_if(begin, begin + keys, [](std::uint8_t key) { return key != 0; }));
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
