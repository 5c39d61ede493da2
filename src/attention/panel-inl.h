// A block of many lanes: for every key block, for every panel of lanes, scores, softmax, values, merge. Keys and values
// are fetched once per block and used by all panels.

#if defined(REGARD_ATTENTION_PANEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_PANEL_INL_H
#undef REGARD_ATTENTION_PANEL_INL_H
#else
#define REGARD_ATTENTION_PANEL_INL_H
#endif

#include <cmath>
#include <vector>

#include "attention/dropout-inl.h"
#include "attention/key_block-inl.h"
#include "attention/state-inl.h"
#include "kernels/turn-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// What a thread has before it while it works on one block of lanes.
struct Desk {
  const LaneBlock& lanes;
  const Problem& problem;
  std::vector<Panel> panels;
  std::int64_t channels, value_channels;
  float scale;
  std::vector<float*> queries;  // per panel: [D][width]
  std::vector<State> states;    // per panel
  float* s;                     // scores, then weights: [kKeyBlock + kSpareKeys][width]
  float* before;                // merge factors, [width]
  float* factor;
  float *copied_k, *copied_v;  // [kKeyBlock][CopyStep(channels)], used if rows cannot be read in place
  float* strips;

  // The part of the current key block that some lane may see.
  std::int64_t first = 0;  // index of its first key
  int keys = 0;
  bool hidden = false;                         // Sequence::visible hides one of them
  const std::byte* k[kKeyBlock + kSpareKeys];  // rows of f32, the last one repeated behind [keys]
  const std::byte* v[kKeyBlock];
  // Values as strips of TileRows channels (PackStrips). With one panel only the
  // channels behind the last whole tile are laid out like that.
  bool all_strips = false;
  // The keys and values of the next block, fetched while this one is computed with: so many lines a tile.
  LinesAhead k_ahead, v_ahead;
  std::int64_t k_pace = 0, v_pace = 0;
  const std::byte* next_k[kKeyBlock];
  const std::byte* next_v[kKeyBlock];

  Desk(const LaneBlock& lanes, Scratch& scratch);
  bool find(std::int64_t index, KeyRange reach);
  void find_values();
  void look_ahead(std::int64_t index, KeyRange reach);
  // Which of the block's keys a panel has to look at, counted inside the block.
  std::pair<int, int> seen_by(const Panel& panel) const {
    return {static_cast<int>(std::clamp<std::int64_t>(panel.reach.begin - first, 0, keys)),
            static_cast<int>(std::clamp<std::int64_t>(panel.reach.end - first, 0, keys))};
  }
};

// What belongs to the lanes of a panel, from an array [rows, H, channels], as [channels][width]; lanes behind the last
// repeat it, so that they meet nothing it does not meet.
inline void PackLanes(const LaneBlock& block, const Panel& panel, const View<const float, 3>& q, float* to) {
  const U32 d;
  const int width = panel.vectors * kLanes;
  const auto to_word = [](float* at) { return reinterpret_cast<std::uint32_t*>(at); };
  for (int lane = 0; lane < width; lane += kLanes) {
    const std::byte* from[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const int source = panel.first_lane + std::min(lane + i, panel.lanes - 1);
      from[i] = reinterpret_cast<const std::byte*>(q.data + block.row[source] * q.stride[0] +
                                                   block.head[source] * q.stride[1]);
    }
    std::int64_t c = 0;
    for (; q.stride[2] == 1 && c + 4 <= q.shape[2]; c += 4) {
      const Words words = Turn(from, c * static_cast<std::ptrdiff_t>(sizeof(float)));
      float* at = to + c * width + lane;
      hn::Store(words.w0, d, to_word(at));
      hn::Store(words.w1, d, to_word(at + width));
      hn::Store(words.w2, d, to_word(at + 2 * width));
      hn::Store(words.w3, d, to_word(at + 3 * width));
    }
    for (; c < q.shape[2]; ++c) {
      for (int i = 0; i < kLanes; ++i)
        to[c * width + lane + i] = reinterpret_cast<const float*>(from[i])[c * q.stride[2]];
    }
  }
}

inline float ScaleOf(const Problem& problem) {
  return problem.scale ? *problem.scale : 1.0f / std::sqrt(static_cast<float>(problem.q.shape[2]));
}

inline Desk::Desk(const LaneBlock& lanes, Scratch& scratch)
    : lanes(lanes),
      problem(*lanes.problem),
      panels(panels_of(lanes, kLanes)),
      channels(problem.q.shape[2]),
      value_channels(problem.value_channels),
      scale(ScaleOf(problem)),
      all_strips(panels.size() > 1) {
  const std::int64_t width = panels.front().vectors * kLanes;  // the widest
  const std::int64_t s_size = RoundUp((kKeyBlock + kSpareKeys) * width);
  const std::int64_t k_size = kKeyBlock * CopyStep(channels), v_size = kKeyBlock * CopyStep(value_channels);
  std::int64_t query_size = 0;
  for (const Panel& panel : panels) query_size += RoundUp(panel.vectors * kLanes * channels);
  const std::int64_t state_size = SizeOf(panels, value_channels, false);
  const std::int64_t strip_size = (value_channels / 4 + 1) * StripStep(4) + StripStep(8);
  scratch.reset(query_size + state_size + s_size + 2 * RoundUp(width) + k_size + v_size + strip_size);
  for (const Panel& panel : panels) {
    queries.push_back(scratch.take(RoundUp(panel.vectors * kLanes * channels)));
    PackLanes(lanes, panel, problem.q, queries.back());
  }
  states = StatesAt(scratch.take(state_size), panels, value_channels, false);
  for (const State& state : states) state.clear();
  s = scratch.take(s_size);
  before = scratch.take(RoundUp(width));
  factor = scratch.take(RoundUp(width));
  copied_k = scratch.take(k_size);
  copied_v = scratch.take(v_size);
  strips = scratch.take(strip_size);
}

// Finds the keys of block `index` within `reach`; false if none of them can be seen.
inline bool Desk::find(std::int64_t index, KeyRange reach) {
  first = std::max(index * kKeyBlock, reach.begin);
  keys = static_cast<int>(std::max<std::int64_t>(0, std::min((index + 1) * kKeyBlock, reach.end) - first));
  const int visible = keys > 0 ? CountVisible(*lanes.sequence, first, keys) : 0;
  if (visible == 0) return false;
  hidden = visible != keys;
  const Rows& rows = lanes.sequence->k;
  LocateRows(rows, lanes.kv_head, first, keys, k);
  // Several panels: copies next to each other, because the rows are read once per panel.
  const bool in_place = InPlace(rows, k, keys);
  if (all_strips || !in_place) CopyRows(rows, in_place, keys, channels, copied_k, k);
  std::fill_n(k + keys, kSpareKeys, k[keys - 1]);
  return true;
}

// Several panels: strips of all channels, because tiles walk down the keys, and rows a power of two apart would push
// each other out of the first cache.
inline void Desk::find_values() {
  const Rows& rows = lanes.sequence->v;
  LocateRows(rows, lanes.kv_head, first, keys, v);
  if (!InPlace(rows, v, keys)) CopyRows(rows, false, keys, value_channels, copied_v, v);
  const int tile = TileRows(panels.front().vectors);
  const std::int64_t channel = all_strips ? 0 : value_channels - value_channels % tile;
  if (tile == 4) PackStrips<4>(v, keys, channel, value_channels, strips);
  if (tile == 8) PackStrips<8>(v, keys, channel, value_channels, strips);
}

// From now on every score tile asks for some lines of the keys and values of block `index`.
inline void Desk::look_ahead(std::int64_t index, KeyRange reach) {
  const std::int64_t begin = std::max(index * kKeyBlock, reach.begin),
                     end = std::min((index + 1) * kKeyBlock, reach.end);
  const int count = static_cast<int>(std::max<std::int64_t>(0, end - begin));
  const auto locate = [&](const Rows& rows, const std::byte** at, std::int64_t row_channels) {
    if (count > 0) LocateRows(rows, lanes.kv_head, begin, count, at);
    return LinesAhead(rows, at, count, row_channels);
  };
  k_ahead = locate(lanes.sequence->k, next_k, channels);
  v_ahead = locate(lanes.sequence->v, next_v, value_channels);
  const std::int64_t tiles = std::ssize(panels) * ((keys + kMaxTileRows - 1) / kMaxTileRows);
  k_pace = k_ahead.pace(tiles);
  v_pace = v_ahead.pace(tiles);
}

// Scores of a panel against keys [from, to) of the block: desk.s[key - from][width].
template <int kVectors>
void PanelScores(Desk& desk, std::size_t index, int from, int to) {
  constexpr int kRows = TileRows(kVectors);
  const V scale = hn::Set(F32(), desk.scale);
  for (int key = from; key < to; key += kRows) {
    desk.k_ahead.fetch(desk.k_pace);
    desk.v_ahead.fetch(desk.v_pace);
    ScoreTile<kVectors>(desk.k + key, desk.channels, desk.queries[index], scale,
                        desk.s + (key - from) * kVectors * kLanes);
  }
  FinishScores<kVectors>(desk.lanes, desk.panels[index], desk.first + from, to - from, desk.hidden, desk.s);
}

// Weights again, with masked keys marked: a tile was not finite, so either something not finite is visible, or a masked
// key holds it and 0 * NaN got in. The careful chain tells them apart by the marks.
template <int kVectors>
HWY_NOINLINE void MarkMasked(Desk& desk, std::size_t index, int from, int to) {
  PanelScores<kVectors>(desk, index, from, to);
  Exponentiate<kVectors, true>(to - from, desk.s);
  if (desk.problem.dropout.probability > 0) {
    Drop<kVectors>(desk.lanes, desk.panels[index], desk.first + from, to - from, desk.s, kVectors * kLanes);
  }
}

template <int kVectors>
void AddPanelValues(Desk& desk, std::size_t index, int from, int to, const State& state) {
  constexpr int kRows = TileRows(kVectors);
  const F32 d;
  // Copies of one's own: a store of a vector may alias what is reached through a desk, but not these.
  const float* HWY_RESTRICT before = desk.before;
  const float* HWY_RESTRICT factor = desk.factor;
  float* const to_values = state.out;
  bool marked = false;
  const auto add = [&](auto values, std::int64_t channel) HWY_ATTR {
    V sum[kRows][kVectors];
    ValueTile<kVectors, false>(values, to - from, desk.s, sum);
    if (HWY_UNLIKELY(!AllFinite(sum))) {
      if (!marked) MarkMasked<kVectors>(desk, index, from, to);
      marked = true;
      ValueTile<kVectors, true>(values, to - from, desk.s, sum);
    }
    float* HWY_RESTRICT out = to_values + channel * kVectors * kLanes;
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      const V mine = hn::Load(d, before + j * kLanes), block = hn::Load(d, factor + j * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) MergeValues(sum[i][j], mine, block, out + (i * kVectors + j) * kLanes);
    }
  };
  const std::int64_t channels = desk.value_channels;
  std::int64_t channel = 0;
  if (!desk.all_strips) {
    for (; channel + kRows <= channels; channel += kRows) add(ValueRows{desk.v + from, channel}, channel);
  }
  const float* strip = desk.strips + from * kRows;
  for (; channel < channels; channel += kRows, strip += StripStep(kRows)) add(ValueStrip<kRows>{strip}, channel);
}

template <int kVectors>
void AttendPanel(Desk& desk, std::size_t index, const State& state) {
  const auto [from, to] = desk.seen_by(desk.panels[index]);
  if (from >= to) return;
  PanelScores<kVectors>(desk, index, from, to);
  const Normaliser<kVectors> seen = Exponentiate<kVectors, false>(to - from, desk.s);
  if (HWY_UNLIKELY(desk.problem.dropout.probability > 0)) {
    Drop<kVectors>(desk.lanes, desk.panels[index], desk.first + from, to - from, desk.s, kVectors * kLanes);
  }
#pragma GCC unroll 3
  for (int j = 0; j < kVectors; ++j) {
    const int at = j * kLanes;
    Merge(seen.max[j], seen.sum[j], state.max + at, state.sum + at, desk.before + at, desk.factor + at);
  }
  AddPanelValues<kVectors>(desk, index, from, to, state);
}

// All panels against key block `index`.
inline void AttendBlock(Desk& desk, std::int64_t index, KeyRange reach, std::span<const State> states) {
  if (!desk.find(index, reach)) return;
  desk.find_values();
  desk.look_ahead(index + 1, reach);
  for (std::size_t p = 0; p < desk.panels.size(); ++p) {
    if (desk.panels[p].vectors == 1) AttendPanel<1>(desk, p, states[p]);
    if (desk.panels[p].vectors == 2) AttendPanel<2>(desk, p, states[p]);
    if (desk.panels[p].vectors == 3) AttendPanel<3>(desk, p, states[p]);
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
