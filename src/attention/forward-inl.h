// Attention of a block of lanes: for every key block, for every panel: scores, softmax, values, merge.

#if defined(REGARD_ATTENTION_FORWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_FORWARD_INL_H
#undef REGARD_ATTENTION_FORWARD_INL_H
#else
#define REGARD_ATTENTION_FORWARD_INL_H
#endif

#include "attention/values-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// One panel against one block of keys.
template <int kVectors>
void AttendBlock(Desk& desk, std::size_t index, KeyBlock& block, KeyRange reach, const State& state) {
  const Panel& panel = desk.panels[index];
  const int from = static_cast<int>(std::clamp<std::int64_t>(panel.reach.begin - block.first, 0, block.keys));
  const int to = static_cast<int>(std::clamp<std::int64_t>(panel.reach.end - block.first, 0, block.keys));
  if (from >= to) return;
  const Sequence& sequence = *desk.lanes.sequence;
  if (desk.narrow) desk.ahead.set(sequence.v, desk.lanes.kv_head, block.first, block.keys, desk.value_channels);
  Scores<kVectors>(desk, panel, desk.queries[index], block, from, to);
  const Normaliser<kVectors> seen = Exponentiate<kVectors, false>(to - from, desk.s);
#pragma GCC unroll 3
  for (int j = 0; j < kVectors; ++j) {
    const int at = j * kLanes;
    Merge(seen.max[j], seen.sum[j], state.max + at, state.sum + at, desk.before + at, desk.block + at);
  }
  if (!block.has_values) desk.find_values(block);
  if (desk.narrow) {
    const std::int64_t next = block.first + block.keys;
    const auto keys = static_cast<int>(std::min<std::int64_t>(kKeyBlock, reach.end - next));
    desk.ahead.set(sequence.k, desk.lanes.kv_head, next, keys, desk.channels);
  }
  AddValues<kVectors>(desk, index, block, from, to, state);
}

inline void AttendBlock(Desk& desk, std::int64_t index, KeyRange reach, const std::vector<State>& states) {
  KeyBlock block = desk.find(index, reach);
  if (block.keys == 0) return;
  for (std::size_t p = 0; p < desk.panels.size(); ++p) {
    if (desk.panels[p].vectors == 1) AttendBlock<1>(desk, p, block, reach, states[p]);
    if (desk.panels[p].vectors == 2) AttendBlock<2>(desk, p, block, reach, states[p]);
    if (desk.panels[p].vectors == 3) AttendBlock<3>(desk, p, block, reach, states[p]);
  }
}

// Merges the state that one block of keys left into `into`, as AttendBlock would have merged the block itself.
inline void MergeState(const Desk& desk, const Panel& panel, const State& block, const State& into) {
  const F32 d;
  const int width = panel.vectors * kLanes;
  for (int j = 0; j < width; j += kLanes) {
    Merge(hn::Load(d, block.max + j), hn::Load(d, block.sum + j), into.max + j, into.sum + j, desk.before + j,
          desk.block + j);
  }
  for (std::int64_t i = 0; i < into.out_size(); i += kLanes) {
    if (desk.narrow) {
      const std::int64_t lane = i / into.lane_step;
      MergeValues(hn::Load(d, block.out + i), hn::Set(d, desk.before[lane]), hn::Set(d, desk.block[lane]),
                  into.out + i);
    } else {
      const std::int64_t lane = i % width;
      MergeValues(hn::Load(d, block.out + i), hn::Load(d, desk.before + lane), hn::Load(d, desk.block + lane),
                  into.out + i);
    }
  }
}

// Counts the sinks, divides, and writes what one panel found.
inline void Finish(const Desk& desk, const Panel& panel, const State& state, const Output& output) {
  const F32 d;
  const LaneBlock& lanes = desk.lanes;
  const Problem& problem = *lanes.problem;
  const int width = panel.vectors * kLanes;
  HWY_ALIGN float log_sum_exp[3 * kLanes];
  std::fill_n(desk.before, width, 1.0f);
  for (int j = 0; j < width; j += kLanes) {
    if (!problem.sinks.empty()) {
      HWY_ALIGN float sink[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        sink[i] = problem.sinks[lanes.head[panel.first_lane + std::min(j + i, panel.lanes - 1)]];
      }
      // A block of one key without a value; a sink of -inf is none.
      const V score = hn::Load(d, sink);
      const auto none = hn::Eq(score, hn::Set(d, kMinusInfinity));
      Merge(score, hn::IfThenZeroElse(none, hn::Set(d, 1.0f)), state.max + j, state.sum + j, desk.before + j,
            desk.block + j);
    }
    hn::Store(hn::Add(hn::Load(d, state.max + j), Log(d, hn::Load(d, state.sum + j))), d, log_sum_exp + j);
  }
  for (std::int64_t i = 0; i < state.out_size(); i += kLanes) {
    const std::int64_t lane = desk.narrow ? i / state.lane_step : i % width;
    const V sum = desk.narrow ? hn::Set(d, state.sum[lane]) : hn::Load(d, state.sum + lane);
    const V before = desk.narrow ? hn::Set(d, desk.before[lane]) : hn::Load(d, desk.before + lane);
    const V mean = hn::Div(hn::Mul(hn::Load(d, state.out + i), before), sum);
    // + 0: whether a zero is -0 may depend on masked keys that were looked at.
    hn::Store(hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Add(mean, hn::Zero(d))), d, state.out + i);
  }
  for (int lane = 0; lane < panel.lanes; ++lane) {
    const std::int64_t row = lanes.row[panel.first_lane + lane];
    const std::int32_t head = lanes.head[panel.first_lane + lane];
    const float* from = state.out + lane * state.lane_step;
    float* to = &output.out(row, head, 0);
    for (std::int64_t c = 0; c < desk.value_channels; ++c) to[c * output.out.stride[2]] = from[c * state.channel_step];
    if (output.softmax.data != nullptr) output.softmax(row, head) = {state.max[lane], state.sum[lane]};
    if (output.log_sum_exp.data != nullptr) output.log_sum_exp(row, head) = log_sum_exp[lane];
  }
}

inline std::int64_t StateSize(const LaneBlock& lanes) {
  std::int64_t size = 0;
  for (const Panel& panel : panels_of(lanes, kLanes)) {
    size += State(nullptr, panel, lanes.problem->value_channels, lanes.lanes() <= kNarrowLanes).size;
  }
  return size;
}

inline void Attend(const LaneBlock& lanes, const Output& output, Scratch& scratch) {
  Desk desk(lanes, scratch);
  desk.clear(desk.states);
  const KeyRange reach = lanes.reach();
  const BlockRange blocks = blocks_of(reach);
  for (std::int64_t index = blocks.begin; index < blocks.end; ++index) AttendBlock(desk, index, reach, desk.states);
  for (std::size_t p = 0; p < desk.panels.size(); ++p) Finish(desk, desk.panels[p], desk.states[p], output);
}

inline void AttendPart(const LaneBlock& lanes, BlockRange blocks, float* states, Scratch& scratch) {
  Desk desk(lanes, scratch);
  const KeyRange reach = lanes.reach();
  const std::int64_t state_size = desk.state_size();
  for (std::int64_t index = blocks.begin; index < blocks.end; ++index, states += state_size) {
    const std::vector<State> mine = desk.states_at(states);
    desk.clear(mine);
    AttendBlock(desk, index, reach, mine);
  }
}

inline void AttendMerge(const LaneBlock& lanes, std::int64_t blocks, float* states, const Output& output,
                        Scratch& scratch) {
  Desk desk(lanes, scratch);
  desk.clear(desk.states);
  const std::int64_t state_size = desk.state_size();
  for (std::int64_t index = 0; index < blocks; ++index, states += state_size) {
    const std::vector<State> part = desk.states_at(states);
    for (std::size_t p = 0; p < part.size(); ++p) MergeState(desk, desk.panels[p], part[p], desk.states[p]);
  }
  for (std::size_t p = 0; p < desk.panels.size(); ++p) Finish(desk, desk.panels[p], desk.states[p], output);
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
