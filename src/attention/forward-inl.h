// Attention of a block of lanes: for every key block, for every panel: scores, softmax, values, merge.

#if defined(REGARD_ATTENTION_FORWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_FORWARD_INL_H
#undef REGARD_ATTENTION_FORWARD_INL_H
#else
#define REGARD_ATTENTION_FORWARD_INL_H
#endif

#include <cmath>
#include <vector>

#include "attention/kernel.h"
#include "attention/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// Value channels are merged in whole tiles; state and strips have room for the widest.
constexpr std::int64_t PaddedChannels(std::int64_t channels) {
  return (channels + kMaxTileRows - 1) / kMaxTileRows * kMaxTileRows;
}

// What a panel has seen so far.
struct State {
  float* max;  // [width]
  float* sum;  // [width]
  float* out;  // [padded E][width], not yet divided by sum

  State(float* memory, const Panel& panel)
      : max(memory), sum(memory + panel.vectors * kLanes), out(sum + panel.vectors * kLanes) {}
  static std::int64_t size(const Panel& panel, std::int64_t channels) {
    return (PaddedChannels(channels) + 2) * panel.vectors * kLanes;
  }
  void clear(const Panel& panel, std::int64_t channels) const {
    const std::int64_t width = panel.vectors * kLanes;
    std::fill_n(max, width, kMinusInfinity);
    std::fill_n(sum, width * (PaddedChannels(channels) + 1), 0.0f);
  }
};

// The working memory of a block of lanes.
struct Desk {
  const LaneBlock& lanes;
  std::vector<Panel> panels;
  std::vector<float*> queries;  // per panel, [D][width]
  std::int64_t channels, value_channels;
  V scale;
  int tile_rows;  // of the panels: all have the same
  bool strips;    // several panels read the values: worth laying them out
  float *k = nullptr, *v = nullptr, *strip = nullptr, *s = nullptr;
  float *before = nullptr, *block = nullptr;  // merge factors, [width]
  float* states = nullptr;

  Desk(const LaneBlock& lanes, Scratch& scratch, bool values, bool with_states)
      : lanes(lanes),
        panels(panels_of(lanes, kLanes)),
        channels(lanes.problem->q.shape[2]),
        value_channels(lanes.problem->value_channels) {
    const Problem& problem = *lanes.problem;
    scale = hn::Set(F32(), problem.scale ? *problem.scale : 1.0f / std::sqrt(static_cast<float>(channels)));
    std::int64_t query_size = 0, state_size = 0;
    int width = 0;
    for (const Panel& panel : panels) {
      width = std::max(width, panel.vectors * kLanes);
      query_size += (panel.vectors * kLanes * channels + 15) / 16 * 16;
      state_size += State::size(panel, value_channels);
    }
    tile_rows = TileRows(panels.front().vectors);
    strips = values && panels.size() > 1;
    const std::int64_t k_size = kKeyBlock * WidenedStride(channels);
    const std::int64_t v_size = values ? kKeyBlock * WidenedStride(value_channels) : 0;
    const std::int64_t strip_size = !values ? 0 : kKeyBlock * (strips ? PaddedChannels(value_channels) : kMaxTileRows);
    const std::int64_t s_size = std::int64_t{kKeyBlock + kMaxTileRows} * width;
    if (!with_states) state_size = 0;
    scratch.reset(query_size + k_size + v_size + strip_size + s_size + 4 * width + 32 + state_size);
    for (const Panel& panel : panels) {
      queries.push_back(scratch.take((panel.vectors * kLanes * channels + 15) / 16 * 16));
      PackQueries(lanes, panel, queries.back());
    }
    k = scratch.take(k_size);
    v = scratch.take(v_size);
    strip = scratch.take(strip_size);
    s = scratch.take((s_size + 15) / 16 * 16);
    before = scratch.take((width + 15) / 16 * 16);
    block = scratch.take((width + 15) / 16 * 16);
    states = scratch.take(state_size);
  }

  // The part of key block `index` within `reach`; keys = 0 if none of it can be seen.
  KeyBlock find(std::int64_t index, KeyRange reach, bool values) {
    KeyBlock found;
    found.first = std::max(index * kKeyBlock, reach.begin);
    const std::int64_t end = std::min((index + 1) * kKeyBlock, reach.end);
    const int keys = static_cast<int>(std::max<std::int64_t>(end - found.first, 0));
    const auto& visible = lanes.sequence->visible;
    if (!visible.empty() && keys > 0) {
      const auto begin = visible.begin() + found.first;
      const auto there = std::count_if(begin, begin + keys, [](std::uint8_t there) { return there != 0; });
      if (there == 0) return found;
      found.hidden = there != keys;
    }
    if (keys == 0) return found;
    found.keys = keys;
    FindRows(lanes.sequence->k, lanes.kv_head, found.first, keys, channels, k, found.k);
    std::fill_n(found.k + keys, kMaxTileRows, found.k[keys - 1]);
    if (values) find_values(found);
    return found;
  }

  void find_values(KeyBlock& found) {
    FindRows(lanes.sequence->v, lanes.kv_head, found.first, found.keys, value_channels, v, found.v);
    float* to = strip;
    for (std::int64_t c = strips ? 0 : value_channels - value_channels % tile_rows; c < value_channels;
         c += tile_rows) {
      if (tile_rows == 8) {
        PackStrip<8>(found.v, found.keys, c, value_channels, to);
      } else {
        PackStrip<4>(found.v, found.keys, c, value_channels, to);
      }
      to += kKeyBlock * tile_rows;
    }
    if (strips) {
      found.strips = strip;
    } else {
      found.tail = strip;
    }
  }
};

// out = fma(out, before, values * block) for the channels of one tile. -0 counts as +0: a sum over masked keys only is
// +0.
template <int kVectors>
HWY_INLINE void MergeTile(const V (&values)[TileRows(kVectors)][kVectors], const float* HWY_RESTRICT before,
                          const float* HWY_RESTRICT block, float* HWY_RESTRICT out) {
  constexpr int kRows = TileRows(kVectors);
  const F32 d;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      float* at = out + (i * kVectors + j) * kLanes;
      const V value = hn::Mul(hn::Add(values[i][j], hn::Zero(d)), hn::Load(d, block + j * kLanes));
      hn::Store(Fma(hn::Load(d, at), hn::Load(d, before + j * kLanes), value), d, at);
    }
  }
}

// One panel against one block of keys.
template <int kVectors>
void AttendBlock(Desk& desk, std::size_t index, const KeyBlock& block, State state) {
  constexpr int kRows = TileRows(kVectors);
  const Panel& panel = desk.panels[index];
  const int from = static_cast<int>(std::clamp<std::int64_t>(panel.reach.begin - block.first, 0, block.keys));
  const int to = static_cast<int>(std::clamp<std::int64_t>(panel.reach.end - block.first, 0, block.keys));
  if (from >= to) return;
  const float* q = desk.queries[index];
  Scores<kVectors>(desk.lanes, panel, block, from, to, q, desk.scale, desk.s);
  const Normaliser<kVectors> normaliser = Exponentiate<kVectors, false>(to - from, desk.s);
#pragma GCC unroll 3
  for (int j = 0; j < kVectors; ++j) {
    const int at = j * kLanes;
    Merge(normaliser.max[j], normaliser.sum[j], state.max + at, state.sum + at, desk.before + at, desk.block + at);
  }
  bool marked = false;
  const auto merge_channels = [&](auto values, std::int64_t channel) HWY_ATTR {
    V sum[kRows][kVectors];
    ValueTile<kVectors, false>(values, to - from, desk.s, sum);
    if (HWY_UNLIKELY(!AllFinite<kVectors>(sum))) {
      // Either something not finite is visible, or a masked key holds it and 0 * NaN got in. Marks tell them apart.
      if (!marked) {
        Scores<kVectors>(desk.lanes, panel, block, from, to, q, desk.scale, desk.s);
        Exponentiate<kVectors, true>(to - from, desk.s);
        marked = true;
      }
      ValueTile<kVectors, true>(values, to - from, desk.s, sum);
    }
    MergeTile<kVectors>(sum, desk.before, desk.block, state.out + channel * kVectors * kLanes);
  };
  const std::int64_t channels = desk.value_channels;
  std::int64_t channel = 0;
  if (block.strips != nullptr) {
    const float* strip = block.strips + from * kRows;
    for (; channel < channels; channel += kRows, strip += kKeyBlock * kRows)
      merge_channels(ValueStrip<kRows>{strip}, channel);
    return;
  }
  for (; channel + kRows <= channels; channel += kRows) merge_channels(ValueRows{block.v + from, channel}, channel);
  if (channel < channels) merge_channels(ValueStrip<kRows>{block.tail + from * kRows}, channel);
}

inline void AttendBlock(Desk& desk, std::size_t index, const KeyBlock& block, State state) {
  switch (desk.panels[index].vectors) {
    case 1:
      return AttendBlock<1>(desk, index, block, state);
    case 2:
      return AttendBlock<2>(desk, index, block, state);
    default:
      return AttendBlock<3>(desk, index, block, state);
  }
}

// Merges the state of one block into `into`, as AttendBlock would have merged the block itself.
inline void MergeState(Desk& desk, const Panel& panel, State block, State into) {
  const F32 d;
  const int width = panel.vectors * kLanes;
  for (int j = 0; j < width; j += kLanes) {
    Merge(hn::Load(d, block.max + j), hn::Load(d, block.sum + j), into.max + j, into.sum + j, desk.before + j,
          desk.block + j);
  }
  for (std::int64_t c = 0; c < desk.value_channels; ++c) {
    for (int j = 0; j < width; j += kLanes) {
      float* at = into.out + c * width + j;
      const V value = hn::Mul(hn::Load(d, block.out + c * width + j), hn::Load(d, desk.block + j));
      hn::Store(Fma(hn::Load(d, at), hn::Load(d, desk.before + j), value), d, at);
    }
  }
}

// Counts the sink, divides, and writes what one panel found.
inline void Finish(Desk& desk, const Panel& panel, State state, const Output& output) {
  const F32 d;
  const LaneBlock& lanes = desk.lanes;
  const Problem& problem = *lanes.problem;
  const int width = panel.vectors * kLanes;
  HWY_ALIGN float log_sum_exp[3 * kLanes];
  for (int j = 0; j < width; j += kLanes) {
    V factor = hn::Set(d, 1.0f);
    if (!problem.sinks.empty()) {
      HWY_ALIGN float sink[kLanes];
      for (int i = 0; i < kLanes; ++i)
        sink[i] = problem.sinks[lanes.head[panel.first_lane + std::min(j + i, panel.lanes - 1)]];
      const V s = hn::Load(d, sink);
      const V none = hn::Set(d, kMinusInfinity);
      const V one = hn::IfThenElse(hn::Eq(s, none), hn::Zero(d), hn::Set(d, 1.0f));
      Merge(s, one, state.max + j, state.sum + j, desk.before + j, desk.block + j);
      factor = hn::Load(d, desk.before + j);
    }
    const V sum = hn::Load(d, state.sum + j);
    hn::Store(hn::Add(hn::Load(d, state.max + j), Log(d, sum)), d, log_sum_exp + j);
    const auto saw_nothing = hn::Eq(sum, hn::Zero(d));
    for (std::int64_t c = 0; c < desk.value_channels; ++c) {
      float* at = state.out + c * width + j;
      const V out = hn::Div(hn::Mul(hn::Load(d, at), factor), sum);
      hn::Store(hn::IfThenZeroElse(saw_nothing, hn::Add(out, hn::Zero(d))), d, at);
    }
  }
  for (int lane = 0; lane < panel.lanes; ++lane) {
    const std::int64_t row = lanes.row[panel.first_lane + lane];
    const std::int32_t head = lanes.head[panel.first_lane + lane];
    float* to = &output.out(row, head, 0);
    for (std::int64_t c = 0; c < desk.value_channels; ++c) to[c * output.out.stride[2]] = state.out[c * width + lane];
    if (output.softmax.data != nullptr) output.softmax(row, head) = {state.max[lane], state.sum[lane]};
    if (output.log_sum_exp.data != nullptr) output.log_sum_exp(row, head) = log_sum_exp[lane];
  }
}

// Floats of the states of all panels, and the state of each panel in such memory.
inline std::int64_t StateSize(const LaneBlock& lanes) {
  std::int64_t size = 0;
  for (const Panel& panel : panels_of(lanes, kLanes)) size += State::size(panel, lanes.problem->value_channels);
  return size;
}
inline std::vector<State> StatesAt(float* memory, const Desk& desk) {
  std::vector<State> states;
  for (const Panel& panel : desk.panels) {
    states.emplace_back(memory, panel);
    memory += State::size(panel, desk.value_channels);
  }
  return states;
}

void Attend(const LaneBlock& lanes, const Output& output, Scratch& scratch) {
  Desk desk(lanes, scratch, true, true);
  const KeyRange reach = lanes.reach();
  const BlockRange blocks = blocks_of(reach);
  const std::vector<State> states = StatesAt(desk.states, desk);
  for (std::size_t p = 0; p < states.size(); ++p) states[p].clear(desk.panels[p], desk.value_channels);
  for (std::int64_t index = blocks.begin; index < blocks.end; ++index) {
    const KeyBlock block = desk.find(index, reach, true);
    if (block.keys == 0) continue;
    for (std::size_t p = 0; p < states.size(); ++p) AttendBlock(desk, p, block, states[p]);
  }
  for (std::size_t p = 0; p < states.size(); ++p) Finish(desk, desk.panels[p], states[p], output);
}

void AttendPart(const LaneBlock& lanes, BlockRange blocks, float* memory, Scratch& scratch) {
  Desk desk(lanes, scratch, true, false);
  const KeyRange reach = lanes.reach();
  const std::int64_t state_size = StateSize(lanes);
  for (std::int64_t index = blocks.begin; index < blocks.end; ++index, memory += state_size) {
    const std::vector<State> states = StatesAt(memory, desk);
    const KeyBlock block = desk.find(index, reach, true);
    for (std::size_t p = 0; p < states.size(); ++p) {
      states[p].clear(desk.panels[p], desk.value_channels);
      if (block.keys > 0) AttendBlock(desk, p, block, states[p]);
    }
  }
}

void AttendMerge(const LaneBlock& lanes, std::int64_t blocks, float* memory, const Output& output, Scratch& scratch) {
  Desk desk(lanes, scratch, false, true);
  const std::int64_t state_size = StateSize(lanes);
  const std::vector<State> states = StatesAt(desk.states, desk);
  for (std::size_t p = 0; p < states.size(); ++p) states[p].clear(desk.panels[p], desk.value_channels);
  for (std::int64_t index = 0; index < blocks; ++index, memory += state_size) {
    const std::vector<State> part = StatesAt(memory, desk);
    for (std::size_t p = 0; p < states.size(); ++p) MergeState(desk, desk.panels[p], part[p], states[p]);
  }
  for (std::size_t p = 0; p < states.size(); ++p) Finish(desk, desk.panels[p], states[p], output);
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
