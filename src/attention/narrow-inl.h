// Blocks of at most four lanes, those of all key/value heads together, as when a token is decoded: reading memory is
// what takes time then. Keys come in tiles of a few rows; a tile is used by all heads before the next, because a row
// holds all heads side by side and memory wants to be read in order.

#if defined(REGARD_ATTENTION_NARROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_NARROW_INL_H
#undef REGARD_ATTENTION_NARROW_INL_H
#else
#define REGARD_ATTENTION_NARROW_INL_H
#endif

#include <utility>
#include <vector>

#include "attention/narrow_tile-inl.h"
#include "attention/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

struct NarrowDesk {
  std::span<const LaneBlock> blocks;  // one or more per key/value head
  const Problem& problem;
  const Sequence& sequence;
  std::int64_t channels, value_channels;
  std::vector<Panel> panels;    // per block
  std::vector<State> states;    // per block
  std::vector<float*> queries;  // per block: [lanes][D]
  std::vector<float*> s;        // per block: [kKeyBlock + kSpareKeys][kLanes]
  std::vector<float*> sums;     // per block: values of one key block, [lanes][RoundUp(E)]
  float* seen;                  // maximum and sum in one key block: [blocks][2][kLanes]
  float* before;                // merge factors, [kLanes]
  float* factor;
  float* tile;  // copied rows, [kNarrowKeys][kTileStep]
  float* tail;  // channels behind the last whole vector, [kNarrowKeys][kLanes]

  // The part of the current key block that some lane may see.
  std::int64_t first = 0;
  int keys = 0;
  bool hidden = false;
  bool k_in_place = false, v_in_place = false;
  const std::byte* k[kKeyBlock];  // rows of head 0
  const std::byte* v[kKeyBlock];
  const std::byte* next_k[kNarrowKeys];  // the first of the next block
  int next_keys = 0;
  const std::byte* value_row[kNarrowKeys];

  NarrowDesk(std::span<const LaneBlock> blocks, Scratch& scratch);
  bool find(std::int64_t index, KeyRange reach);
  // Copies keys [key, key + how_many) of one head to `tile`, as f32.
  void copy_keys(std::int64_t kv_head, int key, int how_many) {
    const std::int64_t offset = kv_head * sequence.k.head_stride;
    for (int i = 0; i < how_many; ++i)
      CopyRow(sequence.k, k_in_place, k[key + i] + offset, channels, tile + i * kTileStep);
  }
  // Where values of keys [key, key + how_many) of one head can be read as f32.
  const std::byte* const* value_rows(std::int64_t kv_head, int key, int how_many) {
    const std::int64_t offset = kv_head * sequence.v.head_stride;
    for (int i = 0; i < how_many; ++i) {
      value_row[i] = v[key + i] + offset;
      if (v_in_place) continue;
      CopyRow(sequence.v, false, value_row[i], value_channels, tile + i * kTileStep);
      value_row[i] = reinterpret_cast<const std::byte*>(tile + i * kTileStep);
    }
    return value_row;
  }
  // What to fetch ahead: these rows of all heads, as one stretch if the heads lie side by side.
  LinesAhead lines_ahead(const Rows& from, const std::byte* const* head0, int count, std::int64_t row_channels) const {
    LinesAhead ahead(from, head0, count, row_channels);
    if (ahead.heads == 0) return ahead;
    if (from.head_stride == ahead.bytes) {
      ahead.bytes *= problem.kv_heads;
    } else {
      ahead.heads = problem.kv_heads;
      ahead.head_stride = from.head_stride;
    }
    return ahead;
  }
};

// f(integral_constant<int, n>) for n lanes.
template <class F>
HWY_INLINE void WithLanes(int lanes, F f) {
  if (lanes == 1) f(std::integral_constant<int, 1>());
  if (lanes == 2) f(std::integral_constant<int, 2>());
  if (lanes == 3) f(std::integral_constant<int, 3>());
  if (lanes == 4) f(std::integral_constant<int, 4>());
}

inline NarrowDesk::NarrowDesk(std::span<const LaneBlock> blocks, Scratch& scratch)
    : blocks(blocks),
      problem(*blocks.front().problem),
      sequence(*blocks.front().sequence),
      channels(problem.q.shape[2]),
      value_channels(problem.value_channels) {
  for (const LaneBlock& block : blocks) panels.push_back(panels_of(block, kLanes).front());
  const std::int64_t state_size = SizeOf(panels, value_channels, true);
  const std::int64_t q_size = RoundUp(kNarrowLanes * channels), sum_size = kNarrowLanes * RoundUp(value_channels);
  const std::int64_t s_size = (kKeyBlock + kSpareKeys) * kLanes;
  const std::int64_t tile_size = kNarrowKeys * kTileStep;
  scratch.reset(state_size + std::ssize(blocks) * (q_size + s_size + sum_size + 2 * kLanes) + 48 + tile_size +
                kNarrowKeys * kLanes);
  states = StatesAt(scratch.take(state_size), panels, value_channels, true);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    states[b].clear();
    queries.push_back(scratch.take(q_size));
    s.push_back(scratch.take(s_size));
    sums.push_back(scratch.take(sum_size));
    const View<const float, 3>& q = problem.q;
    for (int lane = 0; lane < panels[b].lanes; ++lane) {
      const float* from = q.data + blocks[b].row[lane] * q.stride[0] + blocks[b].head[lane] * q.stride[1];
      for (std::int64_t c = 0; c < channels; ++c) queries[b][lane * channels + c] = from[c * q.stride[2]];
    }
  }
  seen = scratch.take(RoundUp(2 * kLanes * std::ssize(blocks)));
  before = scratch.take(16);
  factor = scratch.take(16);
  tile = scratch.take(tile_size);
  tail = scratch.take(kNarrowKeys * kLanes);
}

inline bool NarrowDesk::find(std::int64_t index, KeyRange reach) {
  first = std::max(index * kKeyBlock, reach.begin);
  const std::int64_t end = std::min((index + 1) * kKeyBlock, reach.end);
  keys = static_cast<int>(std::max<std::int64_t>(0, end - first));
  const int visible = keys > 0 ? CountVisible(sequence, first, keys) : 0;
  if (visible == 0) return false;
  hidden = visible != keys;
  LocateRows(sequence.k, 0, first, keys, k);
  LocateRows(sequence.v, 0, first, keys, v);
  k_in_place = InPlace(sequence.k, k, keys) && sequence.k.head_stride % alignof(float) == 0;
  v_in_place = InPlace(sequence.v, v, keys) && sequence.v.head_stride % alignof(float) == 0;
  next_keys = static_cast<int>(std::clamp<std::int64_t>(reach.end - end, 0, kNarrowKeys));
  LocateRows(sequence.k, 0, end, next_keys, next_k);
  return true;
}

// Products of block b with keys [key, key + kNarrowKeys).
inline void NarrowProducts(NarrowDesk& desk, std::size_t b, int key, LinesAhead& ahead, std::int64_t pace) {
  const int how_many = std::min(kNarrowKeys, desk.keys - key);
  desk.copy_keys(desk.blocks[b].kv_head, key, how_many);
  WithLanes(desk.panels[b].lanes, [&](auto lanes) HWY_ATTR {
    NarrowScoreTile<lanes()>(desk.tile, desk.channels, desk.queries[b], hn::Set(F32(), ScaleOf(desk.problem)), ahead,
                             pace, desk.s[b] + key * kLanes);
  });
}

// Scores of all blocks against the current keys. `then`: rows that are needed next.
inline void NarrowScores(NarrowDesk& desk, const LinesAhead& then) {
  const std::int64_t steps = std::ssize(desk.blocks) * std::max<std::int64_t>(1, desk.channels / 4);
  for (int key = 0; key < desk.keys; key += kNarrowKeys) {
    const int next = key + kNarrowKeys;
    LinesAhead ahead = then;
    if (next < desk.keys) {
      ahead = desk.lines_ahead(desk.sequence.k, desk.k + next, std::min(kNarrowKeys, desk.keys - next), desk.channels);
    }
    const std::int64_t pace = ahead.pace(steps);
    for (std::size_t b = 0; b < desk.blocks.size(); ++b) NarrowProducts(desk, b, key, ahead, pace);
  }
  for (std::size_t b = 0; b < desk.blocks.size(); ++b) {
    FinishScores<1>(desk.blocks[b], desk.panels[b], desk.first, desk.keys, desk.hidden, desk.s[b]);
  }
}

// desk.sums of block b go on through keys [key, key + kNarrowKeys).
template <bool kCareful>
void NarrowValues(NarrowDesk& desk, std::size_t b, int key, LinesAhead& ahead, std::int64_t pace) {
  const int how_many = std::min(kNarrowKeys, desk.keys - key);
  const std::int64_t channels = desk.value_channels, lane_step = RoundUp(channels);
  const std::byte* const* rows = desk.value_rows(desk.blocks[b].kv_head, key, how_many);
  const float* p = desk.s[b] + key * kLanes;
  float* sum = desk.sums[b];
  WithLanes(desk.panels[b].lanes, [&](auto lanes) HWY_ATTR {
    constexpr int kMany = NarrowVectors(lanes());
    std::int64_t c = 0;
    for (; c + kMany * kLanes <= channels; c += kMany * kLanes) {
      NarrowValueTile<lanes(), kMany, kCareful>(ValueRows{rows, c}, how_many, p, lane_step, ahead, pace, sum + c);
    }
    for (; c + kLanes <= channels; c += kLanes) {
      NarrowValueTile<lanes(), 1, kCareful>(ValueRows{rows, c}, how_many, p, lane_step, ahead, pace, sum + c);
    }
    if (c < channels) {
      PackStrips<kLanes>(rows, how_many, c, channels, desk.tail);
      NarrowValueTile<lanes(), 1, kCareful>(ValueStrip<kLanes>{desk.tail}, how_many, p, lane_step, ahead, pace,
                                            sum + c);
    }
  });
}

// The sums of block b again, when they are not finite: either something not finite is visible, or a masked key holds it
// and 0 * NaN got in.
HWY_NOINLINE inline void NarrowValuesCarefully(NarrowDesk& desk, std::size_t b) {
  LinesAhead none;
  for (int key = 0; key < desk.keys; key += kNarrowKeys) NarrowProducts(desk, b, key, none, 0);
  FinishScores<1>(desk.blocks[b], desk.panels[b], desk.first, desk.keys, desk.hidden, desk.s[b]);
  Exponentiate<1, true>(desk.keys, desk.s[b]);
  if (desk.problem.dropout.probability > 0) {
    Drop<1>(desk.blocks[b], desk.panels[b], desk.first, desk.keys, desk.s[b], kLanes);
  }
  std::fill_n(desk.sums[b], desk.states[b].out_size, 0.0f);
  for (int key = 0; key < desk.keys; key += kNarrowKeys) NarrowValues<true>(desk, b, key, none, 0);
}

// All blocks of lanes against key block `index`.
inline void AttendBlock(NarrowDesk& desk, std::int64_t index, KeyRange reach, std::span<const State> states) {
  if (!desk.find(index, reach)) return;
  const F32 d;
  const int first_tile = std::min(kNarrowKeys, desk.keys);
  NarrowScores(desk, desk.lines_ahead(desk.sequence.v, desk.v, first_tile, desk.value_channels));
  for (std::size_t b = 0; b < desk.blocks.size(); ++b) {
    const Normaliser<1> seen = Exponentiate<1, false>(desk.keys, desk.s[b]);
    if (HWY_UNLIKELY(desk.problem.dropout.probability > 0)) {
      Drop<1>(desk.blocks[b], desk.panels[b], desk.first, desk.keys, desk.s[b], kLanes);
    }
    hn::Store(seen.max[0], d, desk.seen + 2 * b * kLanes);
    hn::Store(seen.sum[0], d, desk.seen + (2 * b + 1) * kLanes);
    std::fill_n(desk.sums[b], states[b].out_size, 0.0f);
  }
  for (int key = 0; key < desk.keys; key += kNarrowKeys) {
    const int next = key + kNarrowKeys, more = std::min(kNarrowKeys, desk.keys - next);
    LinesAhead ahead = more > 0 ? desk.lines_ahead(desk.sequence.v, desk.v + next, more, desk.value_channels)
                                : desk.lines_ahead(desk.sequence.k, desk.next_k, desk.next_keys, desk.channels);
    for (std::size_t b = 0; b < desk.blocks.size(); ++b) {
      const int tile = NarrowVectors(desk.panels[b].lanes) * kLanes;
      const std::int64_t steps =
          std::ssize(desk.blocks) * std::max<std::int64_t>(1, desk.value_channels / tile) * (kNarrowKeys / 4);
      NarrowValues<false>(desk, b, key, ahead, ahead.pace(steps));
    }
  }
  for (std::size_t b = 0; b < desk.blocks.size(); ++b) {
    const State& state = states[b];
    V finite = hn::Zero(d);
    for (std::int64_t i = 0; i < state.out_size; i += kLanes)
      finite = Fma(hn::Load(d, desk.sums[b] + i), hn::Zero(d), finite);
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(finite, hn::Zero(d))))) NarrowValuesCarefully(desk, b);
    const float* seen = desk.seen + 2 * b * kLanes;
    Merge(hn::Load(d, seen), hn::Load(d, seen + kLanes), state.max, state.sum, desk.before, desk.factor);
    for (std::int64_t i = 0; i < state.out_size; i += kLanes) {
      MergeValues(hn::Load(d, desk.sums[b] + i), state.of_lanes(desk.before, i), state.of_lanes(desk.factor, i),
                  state.out + i);
    }
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
