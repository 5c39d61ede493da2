// What a thread has before it while it works on one block of lanes: queries, keys, values, scores, and what was seen so
// far.

#if defined(REGARD_ATTENTION_DESK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_DESK_INL_H
#undef REGARD_ATTENTION_DESK_INL_H
#else
#define REGARD_ATTENTION_DESK_INL_H
#endif

#include <cmath>
#include <vector>

#include "attention/kernel.h"
#include "attention/key_block-inl.h"
#include "attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// A block of so few lanes takes the narrow tiles.
inline constexpr int kNarrowLanes = 4;

constexpr std::int64_t RoundUp(std::int64_t n) { return (n + 15) / 16 * 16; }

// What a panel has seen so far: maximum and sum per lane, and the values, not yet divided by the sum.
struct State {
  float* max;  // [width]
  float* sum;  // [width]
  float* out;  // element (channel, lane) at channel * channel_step + lane * lane_step
  std::int64_t channel_step, lane_step;
  std::int64_t size;  // floats at max, sum and out together, which lie in one piece

  State(float* memory, const Panel& panel, std::int64_t value_channels, bool narrow) {
    const std::int64_t width = panel.vectors * kLanes;
    max = memory;
    sum = memory + width;
    out = memory + RoundUp(2 * width);
    channel_step = narrow ? 1 : width;
    lane_step = narrow ? RoundUp(value_channels) : 1;
    size = RoundUp(2 * width) + RoundUp(value_channels) * (narrow ? panel.lanes : width);
  }
  std::int64_t out_size() const { return size - (out - max); }
  void clear(int width) const {
    std::fill_n(max, width, kMinusInfinity);
    std::fill_n(sum, size - width, 0.0f);
  }
};

struct Desk {
  const LaneBlock& lanes;
  std::vector<Panel> panels;
  bool narrow;
  std::int64_t channels, value_channels;
  V scale;
  std::vector<float*> queries;  // per panel: [D][width], narrow: [lanes][D]
  float* k = nullptr;           // [kKeyBlock][WidenedStride(D)], if rows must be widened
  float* v = nullptr;           // the same of values
  float* strips = nullptr;
  float* s = nullptr;       // scores, then weights: [kKeyBlock + kSpareKeys][width]
  float* before = nullptr;  // merge factors, [width]
  float* block = nullptr;
  std::vector<State> states;  // per panel
  RowsAhead ahead;

  Desk(const LaneBlock& lanes, Scratch& scratch);
  // The part of key block `index` within `reach`; keys = 0 if none of it can be seen.
  KeyBlock find(std::int64_t index, KeyRange reach);
  void find_values(KeyBlock& found);
  // States of all panels in other memory than this desk's own.
  std::vector<State> states_at(float* memory) const {
    std::vector<State> there;
    for (const Panel& panel : panels) {
      there.emplace_back(memory, panel, value_channels, narrow);
      memory += there.back().size;
    }
    return there;
  }
  std::int64_t state_size() const {
    std::int64_t size = 0;
    for (const State& state : states_at(nullptr)) size += state.size;
    return size;
  }
  void clear(const std::vector<State>& which) const {
    for (std::size_t p = 0; p < panels.size(); ++p) which[p].clear(panels[p].vectors * kLanes);
  }
};

// Queries of a panel as [D][width]; lanes behind the last repeat it, so that they meet nothing it does not meet.
inline void PackQueries(const LaneBlock& block, const Panel& panel, bool narrow, float* to) {
  const View<const float, 3>& q = block.problem->q;
  const int width = narrow ? panel.lanes : panel.vectors * kLanes;
  const std::int64_t channel_step = narrow ? 1 : width, lane_step = narrow ? q.shape[2] : 1;
  for (int lane = 0; lane < width; ++lane) {
    const int source = panel.first_lane + std::min(lane, panel.lanes - 1);
    const float* from = q.data + block.row[source] * q.stride[0] + block.head[source] * q.stride[1];
    for (std::int64_t c = 0; c < q.shape[2]; ++c) to[c * channel_step + lane * lane_step] = from[c * q.stride[2]];
  }
}

inline Desk::Desk(const LaneBlock& lanes, Scratch& scratch)
    : lanes(lanes),
      panels(panels_of(lanes, kLanes)),
      narrow(lanes.lanes() <= kNarrowLanes),
      channels(lanes.problem->q.shape[2]),
      value_channels(lanes.problem->value_channels) {
  const Problem& problem = *lanes.problem;
  scale = hn::Set(F32(), problem.scale ? *problem.scale : 1.0f / std::sqrt(static_cast<float>(channels)));
  int width = 0;
  std::int64_t all_lanes = 0;
  for (const Panel& panel : panels) {
    width = std::max(width, panel.vectors * kLanes);
    all_lanes += panel.vectors * kLanes;
  }
  const std::int64_t k_size = kKeyBlock * WidenedStride(channels), v_size = kKeyBlock * WidenedStride(value_channels);
  const std::int64_t s_size = RoundUp(std::int64_t{kKeyBlock + kSpareKeys} * width);
  scratch.reset(RoundUp(all_lanes * channels) + 16 * static_cast<std::int64_t>(panels.size()) + k_size + 2 * v_size +
                s_size + 2 * RoundUp(width) + state_size());
  for (const Panel& panel : panels) {
    queries.push_back(scratch.take(RoundUp(panel.vectors * kLanes * channels)));
    PackQueries(lanes, panel, narrow, queries.back());
  }
  k = scratch.take(k_size);
  v = scratch.take(v_size);
  strips = scratch.take(v_size);
  s = scratch.take(s_size);
  before = scratch.take(RoundUp(width));
  block = scratch.take(RoundUp(width));
  states = states_at(scratch.take(state_size()));
}

inline KeyBlock Desk::find(std::int64_t index, KeyRange reach) {
  KeyBlock found;
  found.first = std::max(index * kKeyBlock, reach.begin);
  const int keys = static_cast<int>(std::min((index + 1) * kKeyBlock, reach.end) - found.first);
  if (keys <= 0) return found;
  const auto& visible = lanes.sequence->visible;
  if (!visible.empty()) {
    const auto begin = visible.begin() + found.first;
    const auto there = std::count_if(begin, begin + keys, [](std::uint8_t key) { return key != 0; });
    if (there == 0) return found;
    found.hidden = there != keys;
  }
  found.keys = keys;
  FindRows(lanes.sequence->k, lanes.kv_head, found.first, keys, channels, k, found.k);
  std::fill_n(found.k + keys, kSpareKeys, found.k[keys - 1]);
  return found;
}

// Several panels: strips of all channels, because tiles walk down the keys and rows a power of two apart would push
// each other out of the first cache. One panel: the rows as they are, and the channels behind the last whole tile as a
// strip.
inline void Desk::find_values(KeyBlock& found) {
  found.has_values = true;
  FindRows(lanes.sequence->v, lanes.kv_head, found.first, found.keys, value_channels, v, found.v);
  const int rows = narrow ? kLanes : TileRows(panels.front().vectors);
  const bool all = panels.size() > 1;
  float* to = strips;
  for (std::int64_t c = all ? 0 : value_channels - value_channels % rows; c < value_channels; c += rows) {
    if (rows == 4) PackStrip<4>(found.v, found.keys, c, value_channels, to);
    if (rows == 8) PackStrip<8>(found.v, found.keys, c, value_channels, to);
    if (rows == 16) PackStrip<16>(found.v, found.keys, c, value_channels, to);
    to += kKeyBlock * rows;
  }
  (all ? found.strips : found.tail) = strips;
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
