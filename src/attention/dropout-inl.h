// Dropout of the weights of a panel.

#if defined(REGARD_ATTENTION_DROPOUT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_DROPOUT_INL_H
#undef REGARD_ATTENTION_DROPOUT_INL_H
#else
#define REGARD_ATTENTION_DROPOUT_INL_H
#endif

#include <algorithm>

#include "attention/dropout.h"
#include "attention/lanes.h"
#include "attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// s[key * step + lane] times 1 / (1 - probability) where the edge of keys [first, first + keys) is kept; where it is
// dropped -0, the mark of what takes part in nothing.
template <int kVectors>
HWY_NOINLINE void Drop(const LaneBlock& block, const Panel& panel, std::int64_t first, int keys, float* s, int step) {
  constexpr int kWidth = kVectors * kLanes;
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const Dropout& dropout = block.problem->dropout;
  const std::uint64_t threshold = dropout_threshold(dropout.probability);
  if (threshold > 0xffffffffu) {  // everything
    for (int key = 0; key < keys; ++key) std::fill_n(s + key * step, kWidth, -0.0f);
    return;
  }
  HWY_ALIGN std::uint32_t low[kWidth];
  HWY_ALIGN std::uint32_t high[kWidth];
  for (int lane = 0; lane < kWidth; ++lane) {
    const int source = panel.first_lane + std::min(lane, panel.lanes - 1);
    const std::int64_t position = block.problem->rows[block.row[source]].position;
    const std::uint64_t bits = dropout_lane(dropout.seed, block.sequence_index, block.head[source], position);
    low[lane] = static_cast<std::uint32_t>(bits);
    high[lane] = static_cast<std::uint32_t>(bits >> 32);
  }
  const auto mix = [&](auto x) HWY_ATTR {  // mix_bits
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x85ebca6bu));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(du, 0xc2b2ae35u));
    return hn::Xor(x, hn::ShiftRight<16>(x));
  };
  const V factor = hn::Set(d, 1.0f / (1.0f - dropout.probability)), dropped = hn::Set(d, -0.0f);
  const auto limit = hn::Set(du, static_cast<std::uint32_t>(threshold));
  for (int key = 0; key < keys; ++key, s += step) {
    const auto of_key = hn::Set(du, static_cast<std::uint32_t>(first + key) * 0x9e3779b9u);
    for (int j = 0; j < kWidth; j += kLanes) {
      const auto bits = mix(hn::Xor(mix(hn::Add(of_key, hn::Load(du, low + j))), hn::Load(du, high + j)));
      const V kept = hn::Mul(hn::Load(d, s + j), factor);
      hn::Store(hn::IfThenElse(hn::RebindMask(d, hn::Lt(bits, limit)), dropped, kept), d, s + j);
    }
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
