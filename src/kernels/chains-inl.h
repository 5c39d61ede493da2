// The dense product of a few rows with quantised weights: numbers are widened in registers, used for all rows at once,
// and never written to memory.

#if defined(REGARD_KERNELS_CHAINS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_CHAINS_INL_H
#undef REGARD_KERNELS_CHAINS_INL_H
#else
#define REGARD_KERNELS_CHAINS_INL_H
#endif

#include <algorithm>

#include "kernels/formats-inl.h"
#include "kernels/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

inline constexpr std::int64_t kMostChained = 4;  // rows
// Outputs of a task: a multiple of all groups.
inline constexpr std::int64_t kChainedWidth = (kLanes == 16 ? 4 : 12) * kLaneCount;

// x, of as many rows as the chain is for, times the weights of outputs [begin, end), `groups` vectors at a time.
inline void ChainRows(const Matrix& w, const Format& format, ChainFunction chain, std::size_t groups,
                      View<const float, 2> x, View<float, 2> y, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = static_cast<std::int64_t>(groups * kLanes);
  const std::byte* rows[kGroupsOfOne * kLanes];
  WordBlock blocks[kGroupsOfOne];
  alignas(64) float sums[kMostChained * kGroupsOfFour * kLanes];
  for (std::int64_t n = begin; n < end; n += width) {
    PanelRows(w, n, width, rows);
    const std::ptrdiff_t ahead = NextWeights(w, n, width);
    if (n == begin) Prefetch(rows, width, 0, StoredBytes(w, std::min(w.cols, 4 * kChain)));  // nobody has asked yet
    const std::int64_t count = std::min(width, end - n);
    for (std::int64_t k = 0; k == 0 || k < w.cols; k += kChain) {
      const std::int64_t k_end = std::min(k + kChain, w.cols);
      for (std::size_t g = 0; g < groups; ++g) {
        if (ahead != 0)
          Prefetch(rows + g * kLanes, kLaneCount, ahead + StoredBytes(w, k), ahead + StoredBytes(w, k_end));
        format.read(rows + g * kLanes, k, k_end, blocks[g]);
      }
      chain(blocks, k_end - k, format.numbers, x.data + k, x.stride[0], sums);
      for (std::int64_t r = 0; r < x.shape[0]; ++r) {
        float* to = &y(r, n);
        for (std::int64_t i = 0; i < count; ++i) to[i] = k == 0 ? sums[r * width + i] : to[i] + sums[r * width + i];
      }
    }
  }
}

// Four, two and one row at a time.
inline void ChainTask(const Matrix& w, const Format& format, View<const float, 2> x, View<float, 2> y,
                      std::int64_t begin, std::int64_t end) {
  std::int64_t r = 0;
  const auto next = [&](std::int64_t rows, ChainFunction chain, std::size_t groups) {
    if (x.shape[0] - r < rows) return;
    ChainRows(w, format, chain, groups, x.slice(r, r + rows), y.slice(r, r + rows), begin, end);
    r += rows;
  };
  next(4, format.kernels->chain_of_four, kGroupsOfFour);
  next(2, format.kernels->chain_of_two, kGroupsOfTwo);
  next(1, format.kernels->chain_of_one, kGroupsOfOne);
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
