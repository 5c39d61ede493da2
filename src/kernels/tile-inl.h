// The register tile of the dense product: kRows rows of x times kVectors vectors of outputs, over a stretch of k of an
// unpacked panel of weights. Lanes are outputs; x is broadcast from where it lies. Each output is one chain of fused
// multiply-adds over k ascending, whatever the tile's shape, so the shape is free to tune.

#if defined(REGARD_KERNELS_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_TILE_INL_H
#undef REGARD_KERNELS_TILE_INL_H
#else
#define REGARD_KERNELS_TILE_INL_H
#endif

#include <cstddef>
#include <utility>

#include "kernels/turn-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// What a tile does with its sums at the end of its stretch of k.
enum class TileEnd {
  keep,  // chain = sum: the block of 256 goes on
  set,   // y = sum: the first block is complete
  add,   // y = y + sum: a later block is complete
};

struct TileJob {
  const float* panel;  // [count, stride], first vector of the tile
  std::size_t stride;  // floats from one k to the next
  std::size_t count;   // k in this stretch
  const float* x;      // [kRows, count]
  std::ptrdiff_t x_stride;
  float* y;  // [kRows, kVectors * kLanes]
  std::ptrdiff_t y_stride;
  float* chain;  // [kRows, stride]: sums kept between stretches of the same block
  bool resume;   // start from `chain`, else from +0
  TileEnd end;
};

template <int kRows, int kVectors, std::size_t... kIndex>
HWY_INLINE void TileOver(const TileJob& job, std::index_sequence<kIndex...>) {
  const F32 d;
  constexpr std::size_t kV = kVectors;
  // Every index below is a constant, so the array lives in registers.
  V sum[sizeof...(kIndex)];
  if (job.resume) {
    ((sum[kIndex] = hn::Load(d, job.chain + kIndex / kV * job.stride + kIndex % kV * kLanes)), ...);
  } else {
    ((sum[kIndex] = hn::Zero(d)), ...);
  }
  const float* panel = job.panel;
  const float* x = job.x;
  const auto step = [&]<std::size_t... kColumn, std::size_t... kRow>(std::index_sequence<kColumn...>,
                                                                     std::index_sequence<kRow...>) HWY_ATTR {
    const V w[kVectors] = {hn::Load(d, panel + kColumn * kLanes)...};
    const auto row = [&]<std::size_t kR>(std::integral_constant<std::size_t, kR>) HWY_ATTR {
      const V broadcast = hn::Set(d, x[static_cast<std::ptrdiff_t>(kR) * job.x_stride]);
      ((sum[kR * kV + kColumn] = Fma(w[kColumn], broadcast, sum[kR * kV + kColumn])), ...);
    };
    (row(std::integral_constant<std::size_t, kRow>()), ...);
  };
  // Rows of y are asked for one after the other, so that they are at hand at the end and nothing waits for them now.
  std::size_t k = 0;
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kV; ++v) {
      __builtin_prefetch(job.y + static_cast<std::ptrdiff_t>(r) * job.y_stride + v * kLanes, 1);
    }
    for (const std::size_t end = job.count * (r + 1) / kRows; k < end; ++k, panel += job.stride, ++x) {
      step(std::make_index_sequence<kVectors>(), std::make_index_sequence<kRows>());
    }
  }
  if (job.end == TileEnd::keep) {
    (hn::Store(sum[kIndex], d, job.chain + kIndex / kV * job.stride + kIndex % kV * kLanes), ...);
    return;
  }
  const auto at = [&](std::size_t index) HWY_ATTR {
    return job.y + static_cast<std::ptrdiff_t>(index / kV) * job.y_stride + index % kV * kLanes;
  };
  if (job.end == TileEnd::add) ((sum[kIndex] = hn::Add(hn::LoadU(d, at(kIndex)), sum[kIndex])), ...);
  (hn::StoreU(sum[kIndex], d, at(kIndex)), ...);
}

template <int kRows, int kVectors>
void Tile(const TileJob& job) {
  TileOver<kRows, kVectors>(job, std::make_index_sequence<kRows * kVectors>());
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
