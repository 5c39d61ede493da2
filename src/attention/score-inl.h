// What happens to scores between the product and the softmax: softcap, bias, edges and mask, in that order.

#if defined(REGARD_ATTENTION_SCORE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_SCORE_INL_H
#undef REGARD_ATTENTION_SCORE_INL_H
#else
#define REGARD_ATTENTION_SCORE_INL_H
#endif

#include <algorithm>

#include "attention/lanes.h"
#include "attention/tile-inl.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// score = cap * tanh(score / cap)
inline void Softcap(float cap, int numbers, float* s) {
  const F32 d;
  const V c = hn::Set(d, cap);
  for (int i = 0; i < numbers; i += kLanes) {
    hn::Store(hn::Mul(c, Tanh(d, hn::Div(hn::Load(d, s + i), c))), d, s + i);
  }
}

// score += bias; a bias of -inf masks whatever the score is.
inline void AddBias(const LaneBlock& block, const Panel& panel, std::int64_t first, int keys, float* s) {
  const View<const float, 3>& bias = block.problem->mask.bias;
  const int width = panel.vectors * kLanes;
  for (int lane = 0; lane < panel.lanes; ++lane) {
    const int source = panel.first_lane + lane;
    const std::int64_t at =
        block.problem->mask.bias_by_position ? block.problem->rows[block.row[source]].position : block.row[source];
    const float* from = bias.data + at * bias.stride[0] + block.head[source] * bias.stride[1] + first * bias.stride[2];
    for (int key = 0; key < keys; ++key) {
      const float b = from[key * bias.stride[2]];
      float& score = s[key * width + lane];
      score = b == kMinusInfinity ? b : score + b;
    }
  }
}

inline void EditEdges(const LaneBlock& block, const Panel& panel, std::int64_t first, int keys, float* s) {
  const auto& edges = block.problem->mask.edges;
  const int width = panel.vectors * kLanes;
  for (int lane = 0; lane < panel.lanes; ++lane) {
    const KeyRange mine = block.edges[panel.first_lane + lane];
    if (mine.empty()) continue;
    const auto end = edges.begin() + mine.end;
    auto edge = std::upper_bound(edges.begin() + mine.begin, end, first,
                                 [](std::int64_t key, const EdgeEdit& e) { return key < e.key_end; });
    for (; edge != end && edge->key_begin < first + keys; ++edge) {
      const int from = static_cast<int>(std::max(edge->key_begin, first) - first);
      const int to = static_cast<int>(std::min(edge->key_end, first + keys) - first);
      for (int key = from; key < to; ++key) {
        float& score = s[key * width + lane];
        score = edge->add == kMinusInfinity ? kMinusInfinity : score + edge->add;
      }
    }
  }
}

// score = -inf where the lane's range, its segment or the key itself says so.
template <int kVectors>
inline void MaskScores(const LaneBlock& block, const Panel& panel, std::int64_t first, int keys, float* s) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  constexpr int kWidth = kVectors * kLanes;
  HWY_ALIGN std::int32_t begin[kWidth];
  HWY_ALIGN std::int32_t end[kWidth];
  HWY_ALIGN std::int32_t segment[kWidth];
  for (int lane = 0; lane < kWidth; ++lane) {
    const int source = panel.first_lane + std::min(lane, panel.lanes - 1);
    const KeyRange range = block.visible[source].keys;
    begin[lane] = static_cast<std::int32_t>(std::clamp<std::int64_t>(range.begin - first, 0, keys));
    end[lane] = static_cast<std::int32_t>(std::clamp<std::int64_t>(range.end - first, 0, keys));
    segment[lane] = block.segment[source];
  }
  const V masked = hn::Set(d, kMinusInfinity);
  const auto& visible = block.sequence->visible;
  for (int key = 0; key < keys; ++key, s += kWidth) {
    const bool there = visible.empty() || visible[first + key] != 0;
    for (int j = 0; j < kWidth; j += kLanes) {
      if (!there) {
        hn::Store(masked, d, s + j);
        continue;
      }
      const auto k = hn::Set(di, key);
      auto out = hn::Or(hn::Lt(k, hn::Load(di, begin + j)), hn::Not(hn::Lt(k, hn::Load(di, end + j))));
      if (panel.scattered) {
        const auto of_key = hn::Set(di, block.sequence->segment[first + key]);
        out = hn::Or(out, hn::Ne(of_key, hn::Load(di, segment + j)));
      }
      hn::Store(hn::IfThenElse(hn::RebindMask(d, out), masked, hn::Load(d, s + j)), d, s + j);
    }
  }
}

// What comes after the softcap. `hidden`: Sequence::visible may hide one of the keys.
template <int kVectors>
void BiasAndMask(const LaneBlock& lanes, const Panel& panel, std::int64_t first, int keys, bool hidden, float* s) {
  const Problem& problem = *lanes.problem;
  if (problem.mask.bias.data != nullptr) AddBias(lanes, panel, first, keys, s);
  if (!lanes.edges.empty()) EditEdges(lanes, panel, first, keys, s);
  const bool all_see = panel.shared.begin <= first && panel.shared.end >= first + keys;
  if (!all_see || hidden || panel.scattered) MaskScores<kVectors>(lanes, panel, first, keys, s);
}

// Products of a panel with keys [first, first + keys), s[key][width], become scores.
template <int kVectors>
void FinishScores(const LaneBlock& lanes, const Panel& panel, std::int64_t first, int keys, bool hidden, float* s) {
  const float softcap = lanes.problem->softcap;
  if (softcap > 0) Softcap(softcap, keys * kVectors * kLanes, s);
  BiasAndMask<kVectors>(lanes, panel, first, keys, hidden, s);
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
