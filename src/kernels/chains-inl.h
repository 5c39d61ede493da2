// The dense product of a few rows with weights that are quantised or packed: numbers are widened in registers, used for
// all rows at once, and never written to memory.

#if defined(REGARD_KERNELS_CHAINS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_CHAINS_INL_H
#undef REGARD_KERNELS_CHAINS_INL_H
#else
#define REGARD_KERNELS_CHAINS_INL_H
#endif

#include <algorithm>

#include "kernels/channels-inl.h"
#include "kernels/formats-inl.h"
#include "kernels/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

inline constexpr std::int64_t kMostChained = 4;  // rows
// Outputs of a task: a multiple of all groups.
inline constexpr std::int64_t kChainedWidth = (kLanes == 16 ? 4 : 12) * kLaneCount;
inline constexpr std::size_t kMostSums = kMostChained * std::max(kNumberGroups.four, kHalfGroups.four) * kLanes;

// Asks for what the next panel will read. The processor foresees a strip, but not so far ahead.
inline void PrefetchStrip(const std::byte* block, std::int64_t bytes) {
  for (std::int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(block + b, 0, 2);
}

// y = the sums over k of what block(n, k, k_end, sums) makes: the chains of x's rows, at most kMostChained, and of
// `groups` vectors of outputs from n on, for n in [begin, end).
template <class Block>
HWY_INLINE void AddBlocks(const Matrix& w, std::size_t groups, View<float, 2> y, std::int64_t begin, std::int64_t end,
                          const Block& block) {
  const F32 d;
  const auto width = static_cast<std::int64_t>(groups * kLanes);
  alignas(64) float sums[kMostSums];
  for (std::int64_t n = begin; n < end; n += width) {
    const std::int64_t count = std::min(width, end - n);
    for (std::int64_t k = 0; k == 0 || k < w.cols; k += kChain) {
      block(n, k, std::min(k + kChain, w.cols), sums);
      for (std::int64_t r = 0; r < y.shape[0]; ++r) {
        float* to = &y(r, n);
        ForVectors(count, [&](std::int64_t i, std::int64_t lanes) HWY_ATTR {
          V sum = hn::Load(d, sums + r * width + i);
          if (k != 0) sum = hn::Add(LoadChannels(d, to + i, lanes), sum);
          StoreChannels(sum, d, to + i, lanes);
        });
      }
    }
  }
}

// x, of as many rows as the chain is for, times the weights of outputs [begin, end), `groups` vectors at a time.
inline void ChainRows(const Weights& weights, ChainFunction chain, std::size_t groups, View<const float, 2> x,
                      View<float, 2> y, std::int64_t begin, std::int64_t end) {
  const Matrix& w = weights.stored;
  const NumberFormat& numbers = weights.format.numbers;
  const bool packed = weights.packed != nullptr;
  const auto width = static_cast<std::int64_t>(groups * kLanes);
  constexpr std::size_t kStrips = (kNumberGroups.one * kLanes + kStrip - 1) / kStrip;
  const std::byte* rows[kNumberGroups.one * kLanes] = {};
  alignas(64) std::byte strips[kStrips + 1][kMostBlockBytes];
  const std::uint32_t* words[kNumberGroups.one];
  Scales scales[kNumberGroups.one];
  std::ptrdiff_t ahead = 0;
  AddBlocks(w, groups, y, begin, end, [&](std::int64_t n, std::int64_t k, std::int64_t k_end, float* sums) {
    if (!packed && k == 0) {
      PanelRows(w, n, width, rows);
      ahead = NextWeights(w, n, width);
      if (n == begin) Prefetch(rows, width, 0, StoredBytes(w, std::min(w.cols, 4 * kChain)));  // nobody has asked yet
    }
    for (std::size_t g = 0; g < groups; ++g) {
      const std::byte* const* rows_of_group = rows + g * kLanes;
      if (ahead != 0) Prefetch(rows_of_group, kLaneCount, ahead + StoredBytes(w, k), ahead + StoredBytes(w, k_end));
      const std::int64_t first = n + static_cast<std::int64_t>(g * kLanes);
      const StripBlock block = weights.Block(first, k, k_end, rows_of_group, strips[first / kStrip - n / kStrip]);
      if (packed && !kAsksInChain && block.lane == 0)
        PrefetchStrip(weights.Strip(first + width, k), numbers.Bytes(k_end - k));
      words[g] = WordsOf(block, k_end - k, numbers);
      ReadScales(block, k_end - k, numbers, scales[g]);
    }
    const std::ptrdiff_t next = packed ? (weights.Strip(n + width, k) - weights.Strip(n, k)) / 4 : 0;  // in words
    chain(words, scales, k_end - k, numbers.sub_bits, x.data + k, x.stride[0], next, sums);
  });
}

// The same of packed halves. The processor foresees so few strips by itself; asking for them was slower.
inline void ChainRows(const Weights& weights, ChainHalvesFunction chain, std::size_t groups, View<const float, 2> x,
                      View<float, 2> y, std::int64_t begin, std::int64_t end) {
  const std::uint16_t* at[kHalfGroups.one];
  AddBlocks(weights.stored, groups, y, begin, end,
            [&](std::int64_t n, std::int64_t k, std::int64_t k_end, float* sums) {
              for (std::size_t g = 0; g < groups; ++g)
                at[g] = weights.Halves(n + static_cast<std::int64_t>(g * kLanes), k);
              chain(at, k_end - k, x.data + k, x.stride[0], sums);
            });
}

// Four, two and one row at a time.
template <class Kernels>
void ChainTask(const Weights& w, const Kernels& kernels, const ChainGroups& groups, View<const float, 2> x,
               View<float, 2> y, std::int64_t begin, std::int64_t end) {
  std::int64_t r = 0;
  const auto next = [&](std::int64_t rows, auto chain, std::size_t vectors) {
    if (x.shape[0] - r < rows) return;
    ChainRows(w, chain, vectors, x.slice(r, r + rows), y.slice(r, r + rows), begin, end);
    r += rows;
  };
  next(4, kernels.chain_of_four, groups.four);
  next(2, kernels.chain_of_two, groups.two);
  next(1, kernels.chain_of_one, groups.one);
}

inline void ChainTask(const Weights& w, View<const float, 2> x, View<float, 2> y, std::int64_t begin,
                      std::int64_t end) {
  if (w.format.quantised())
    ChainTask(w, *w.format.kernels, kNumberGroups, x, y, begin, end);
  else
    ChainTask(w, *w.format.halves, kHalfGroups, x, y, begin, end);
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
