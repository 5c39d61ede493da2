// What lanes have seen so far, how key blocks are merged into it, and how it becomes the result.

#if defined(REGARD_ATTENTION_STATE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_STATE_INL_H
#undef REGARD_ATTENTION_STATE_INL_H
#else
#define REGARD_ATTENTION_STATE_INL_H
#endif

#include <algorithm>
#include <cstring>

#include "attention/kernel.h"
#include "attention/softmax-inl.h"
#include "kernels/turn-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

constexpr std::int64_t RoundUp(std::int64_t n) { return (n + 15) / 16 * 16; }

// Maximum and sum per lane, and the values, not yet divided by the sum. Panels keep a vector of lanes per channel,
// narrow blocks a row of channels per lane.
struct State {
  float* max;  // [width]
  float* sum;  // [width]
  float* out;  // element (channel, lane) at channel * channel_step + lane * lane_step
  std::int64_t width, channel_step, lane_step, out_size;
  bool narrow;

  State(float* memory, const Panel& panel, std::int64_t value_channels, bool narrow)
      : max(memory), width(panel.vectors * kLanes), narrow(narrow) {
    sum = max + width;
    out = max + RoundUp(2 * width);
    channel_step = narrow ? 1 : width;
    lane_step = narrow ? RoundUp(value_channels) : 1;
    out_size = RoundUp(value_channels) * (narrow ? panel.lanes : width);
  }
  std::int64_t size() const { return RoundUp(2 * width) + out_size; }
  void clear() const {
    std::fill_n(max, width, kMinusInfinity);
    std::fill_n(sum, size() - width, 0.0f);
  }
  // What belongs to the lanes of vector `i / kLanes` of `out`, from an array [width].
  HWY_INLINE V of_lanes(const float* per_lane, std::int64_t i) const {
    const F32 d;
    return narrow ? hn::Set(d, per_lane[i / lane_step]) : hn::Load(d, per_lane + i % width);
  }
};

inline std::vector<State> StatesAt(float* memory, std::span<const Panel> panels, std::int64_t value_channels,
                                   bool narrow) {
  std::vector<State> states;
  for (const Panel& panel : panels) {
    states.emplace_back(memory, panel, value_channels, narrow);
    memory += states.back().size();
  }
  return states;
}
// What StatesAt takes, in floats.
inline std::int64_t SizeOf(std::span<const Panel> panels, std::int64_t value_channels, bool narrow) {
  std::int64_t size = 0;
  for (const Panel& panel : panels) {
    const std::int64_t width = panel.vectors * kLanes;
    size += RoundUp(2 * width) + RoundUp(value_channels) * (narrow ? panel.lanes : width);
  }
  return size;
}
inline std::int64_t SizeOf(std::span<const State> states) {
  std::int64_t size = 0;
  for (const State& state : states) size += state.size();
  return size;
}

// Merges the state that one block of keys left into `into`, as that block itself would have been merged.
inline void MergeState(const State& block, const State& into) {
  const F32 d;
  HWY_ALIGN float before[3 * kLanes];
  HWY_ALIGN float factor[3 * kLanes];
  for (int j = 0; j < into.width; j += kLanes) {
    Merge(hn::Load(d, block.max + j), hn::Load(d, block.sum + j), into.max + j, into.sum + j, before + j, factor + j);
  }
  for (std::int64_t i = 0; i < into.out_size; i += kLanes) {
    MergeValues(hn::Load(d, block.out + i), into.of_lanes(before, i), into.of_lanes(factor, i), into.out + i);
  }
}

// The values of a panel's lanes, a vector of lanes per channel, into their rows: turned four channels at a time.
inline void WriteLanes(const LaneBlock& lanes, const Panel& panel, const State& state, std::int64_t channels,
                       const View<float, 3>& out) {
  const U32 d;
  HWY_ALIGN std::uint32_t turned[4][kLanes];
  for (int first = 0; first < panel.lanes; first += kLanes) {
    const int count = std::min(kLanes, panel.lanes - first);
    float* to[kLanes];
    for (int i = 0; i < count; ++i) {
      const int lane = panel.first_lane + first + i;
      to[i] = out.data + lanes.row[lane] * out.stride[0] + lanes.head[lane] * out.stride[1];
    }
    const float* from = state.out + first;
    std::int64_t c = 0;
    for (; c + 4 <= channels; c += 4) {
      const auto channel = [&](std::int64_t i) HWY_ATTR {
        return hn::Load(d, reinterpret_cast<const std::uint32_t*>(from + (c + i) * state.channel_step));
      };
      const Words words = TurnVectors(channel(0), channel(1), channel(2), channel(3));
      hn::Store(words.w0, d, turned[0]);
      hn::Store(words.w1, d, turned[1]);
      hn::Store(words.w2, d, turned[2]);
      hn::Store(words.w3, d, turned[3]);
      for (int i = 0; i < count; ++i) std::memcpy(to[i] + c, &turned[i % 4][i / 4 * 4], 4 * sizeof(float));
    }
    for (; c < channels; ++c) {
      for (int i = 0; i < count; ++i) to[i][c] = from[c * state.channel_step + i];
    }
  }
}

// Counts the sinks, divides, and writes what a panel found.
inline void Finish(const LaneBlock& lanes, const Panel& panel, const State& state, const Output& output) {
  const F32 d;
  const Problem& problem = *lanes.problem;
  HWY_ALIGN float log_sum_exp[3 * kLanes];
  HWY_ALIGN float before[3 * kLanes];
  HWY_ALIGN float factor[3 * kLanes];
  std::fill_n(before, 3 * kLanes, 1.0f);
  for (int j = 0; j < state.width; j += kLanes) {
    if (!problem.sinks.empty()) {
      HWY_ALIGN float sink[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        sink[i] = problem.sinks[lanes.head[panel.first_lane + std::min(j + i, panel.lanes - 1)]];
      }
      // A block of one key without a value; a sink of -inf is none.
      const V score = hn::Load(d, sink);
      const V sum = hn::IfThenZeroElse(hn::Eq(score, hn::Set(d, kMinusInfinity)), hn::Set(d, 1.0f));
      Merge(score, sum, state.max + j, state.sum + j, before + j, factor + j);
    }
    hn::Store(hn::Add(hn::Load(d, state.max + j), Log(d, hn::Load(d, state.sum + j))), d, log_sum_exp + j);
  }
  for (std::int64_t i = 0; i < state.out_size; i += kLanes) {
    const V sum = state.of_lanes(state.sum, i);
    const V mean = hn::Div(hn::Mul(hn::Load(d, state.out + i), state.of_lanes(before, i)), sum);
    // + 0: whether a zero is -0 may depend on masked keys that were looked at.
    hn::Store(hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Add(mean, hn::Zero(d))), d, state.out + i);
  }
  if (!state.narrow && output.out.stride[2] == 1) {
    WriteLanes(lanes, panel, state, problem.value_channels, output.out);
  } else {
    for (int lane = 0; lane < panel.lanes; ++lane) {
      const float* from = state.out + lane * state.lane_step;
      float* to = &output.out(lanes.row[panel.first_lane + lane], lanes.head[panel.first_lane + lane], 0);
      for (std::int64_t c = 0; c < problem.value_channels; ++c)
        to[c * output.out.stride[2]] = from[c * state.channel_step];
    }
  }
  for (int lane = 0; lane < panel.lanes; ++lane) {
    const std::int64_t row = lanes.row[panel.first_lane + lane];
    const std::int32_t head = lanes.head[panel.first_lane + lane];
    if (output.softmax.data != nullptr) output.softmax(row, head) = {state.max[lane], state.sum[lane]};
    if (output.log_sum_exp.data != nullptr) output.log_sum_exp(row, head) = log_sum_exp[lane];
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
