// Backward of one chunk of keys: for every block of lanes, for every key block, for every panel, the weights and the
// gradients of the scores; then the sums over lanes and over keys. The passes are numbered as in
// docs/attention-kernel.md.

#if defined(REGARD_ATTENTION_BACKWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_BACKWARD_INL_H
#undef REGARD_ATTENTION_BACKWARD_INL_H
#else
#define REGARD_ATTENTION_BACKWARD_INL_H
#endif

#include <vector>

#include "attention/backward_kernel.h"
#include "attention/outer_tile-inl.h"
#include "attention/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

inline bool AllFinite(const float* numbers, std::int64_t count) {
  const F32 d;
  V seen = hn::Zero(d);  // 0, or NaN from the first number that is not finite
  for (std::int64_t i = 0; i < count; i += kLanes) seen = Fma(hn::Load(d, numbers + i), hn::Zero(d), seen);
  return hn::AllTrue(d, hn::Eq(seen, hn::Zero(d)));
}

// Rows as f32 at a fixed step, zero behind the last channel.
struct RowCopies {
  float* rows = nullptr;
  std::int64_t step = 0;
  bool finite = true;
};

inline RowCopies CopyKeyRows(const Rows& from, std::int64_t kv_head, std::int64_t first, std::int64_t count,
                             std::int64_t channels, float* to) {
  RowCopies copies{to, row_step(channels), true};
  const std::byte* at[kKeyBlock];
  for (std::int64_t key = 0; key < count; key += kKeyBlock) {
    const int some = static_cast<int>(std::min<std::int64_t>(kKeyBlock, count - key));
    LocateRows(from, kv_head, first + key, some, at);
    const bool in_place = InPlace(from, at, some);
    for (int i = 0; i < some; ++i, to += copies.step) {
      CopyRow(from, in_place, at[i], channels, to);
      std::fill(to + channels, to + copies.step, 0.0f);
    }
  }
  copies.finite = AllFinite(copies.rows, count * copies.step);
  return copies;
}

inline RowCopies CopyLaneRows(const LaneBlock& block, const View<const float, 3>& from, float* to) {
  const std::int64_t channels = from.shape[2];
  RowCopies copies{to, row_step(channels), true};
  for (int lane = 0; lane < block.lanes(); ++lane, to += copies.step) {
    const float* row = from.data + block.row[lane] * from.stride[0] + block.head[lane] * from.stride[1];
    if (from.stride[2] == 1)
      std::copy_n(row, channels, to);
    else
      for (std::int64_t c = 0; c < channels; ++c) to[c] = row[c * from.stride[2]];
    std::fill(to + channels, to + copies.step, 0.0f);
  }
  copies.finite = AllFinite(copies.rows, block.lanes() * copies.step);
  return copies;
}

// A panel with what its lanes bring along.
struct BackwardPanel {
  Panel panel;
  float *q, *d_out;            // [D][width], [E][width]
  float *max, *share, *delta;  // [width]; share is 1 / sum
  int width() const { return panel.vectors * kLanes; }
};

// What a thread has before it while it works on a chunk.
struct ChunkDesk {
  const BackwardCall& call;
  const BackwardUnit& unit;
  const Problem& problem;
  const Sequence& sequence;
  std::int64_t channels, value_channels;
  float scale;
  std::int64_t first, keys;  // of the chunk
  RowCopies k, v;            // of the chunk's keys
  RowCopies d_k, d_v;        // sums so far
  // The block of lanes in work.
  const LaneBlock* lanes = nullptr;
  float* of_lanes;  // memory for its panels
  std::vector<BackwardPanel> panels;
  RowCopies q, d_out;
  float* d_q = nullptr;  // [lanes][row_step(D)]
  // Of the panel in work, [kKeyBlock + kSpareKeys][width]: scores, gradients of weights, the softcap's slopes.
  float *scores, *products, *slopes;
  // Of the block of lanes and the key block, [kKeyBlock][kFactorStep]: weights; gradients of the products of queries
  // and keys; gradients of scores, if somebody asks.
  float *weights, *changes, *d_scores;
  // The key block in work, and its rows, the last one repeated behind it.
  std::int64_t block_first = 0;
  int block_keys = 0;
  const std::byte* block_k[kKeyBlock + kSpareKeys];
  const std::byte* block_v[kKeyBlock + kSpareKeys];

  ChunkDesk(const BackwardCall& call, const BackwardUnit& unit, std::int64_t chunk, Scratch& scratch);
  void sit_down(std::size_t index, std::int64_t chunk);
  bool find(std::int64_t block_first);
};

inline ChunkDesk::ChunkDesk(const BackwardCall& call, const BackwardUnit& unit, std::int64_t chunk, Scratch& scratch)
    : call(call),
      unit(unit),
      problem(call.problem),
      sequence(problem.sequences[unit.sequence]),
      channels(problem.q.shape[2]),
      value_channels(problem.value_channels),
      scale(ScaleOf(problem)),
      first(chunk * unit.chunk_keys),
      keys(std::min(unit.chunk_keys, sequence.length - first)) {
  const std::int64_t k_step = row_step(channels), v_step = row_step(value_channels);
  // Room for panels that do not fill their vectors.
  const std::int64_t room = kLaneBlock + 3 * kLanes;
  const std::int64_t per_lane = channels + value_channels + 3;
  const std::int64_t s_size = (kKeyBlock + kSpareKeys) * 3 * kLanes, factor_size = kKeyBlock * kFactorStep;
  scratch.reset((2 * keys + kLaneBlock) * (k_step + v_step) + 3 * s_size + 3 * factor_size + per_lane * room +
                16 * 5 * (kLaneBlock / kLanes + 3));
  k = CopyKeyRows(sequence.k, unit.kv_head, first, keys, channels, scratch.take(keys * k_step));
  v = CopyKeyRows(sequence.v, unit.kv_head, first, keys, value_channels, scratch.take(keys * v_step));
  d_k = {scratch.take(keys * k_step), k_step, true};
  d_v = {scratch.take(keys * v_step), v_step, true};
  std::fill_n(d_k.rows, keys * k_step, 0.0f);
  std::fill_n(d_v.rows, keys * v_step, 0.0f);
  q.rows = scratch.take(kLaneBlock * k_step);
  d_out.rows = scratch.take(kLaneBlock * v_step);
  for (float** each : {&scores, &products, &slopes}) *each = scratch.take(s_size);
  for (float** each : {&weights, &changes, &d_scores}) *each = scratch.take(factor_size);
  of_lanes = scratch.take(0);
}

// Turns to a block of lanes.
inline void ChunkDesk::sit_down(std::size_t index, std::int64_t chunk) {
  lanes = &unit.blocks[index];
  const std::int64_t first_lane = static_cast<std::int64_t>(index) * kLaneBlock;
  if (unit.partial != nullptr) d_q = unit.partial + (chunk * unit.lanes + first_lane) * k.step;
  q = CopyLaneRows(*lanes, problem.q, q.rows);
  d_out = CopyLaneRows(*lanes, call.d_out, d_out.rows);
  panels.clear();
  float* memory = of_lanes;
  const auto take = [&](std::int64_t floats) { return std::exchange(memory, memory + RoundUp(floats)); };
  for (const Panel& panel : panels_of(*lanes, kLanes)) {
    BackwardPanel& mine = panels.emplace_back();
    mine.panel = panel;
    const std::int64_t width = mine.width();
    mine.q = take(channels * width);
    mine.d_out = take(value_channels * width);
    mine.max = take(width);
    mine.share = take(width);
    mine.delta = take(width);
    PackLanes(*lanes, panel, problem.q, mine.q);
    PackLanes(*lanes, panel, call.d_out, mine.d_out);
    for (int lane = 0; lane < width; ++lane) {
      const int source = panel.first_lane + std::min(lane, panel.lanes - 1);
      const RowSoftmax softmax = call.softmax(lanes->row[source], lanes->head[source]);
      mine.max[lane] = softmax.max == kMinusInfinity ? 0.0f : softmax.max;
      mine.share[lane] = 1.0f / softmax.sum;
      mine.delta[lane] = unit.delta[first_lane + source];
    }
  }
}

// Turns to a key block of the chunk; false if none of its keys is there.
inline bool ChunkDesk::find(std::int64_t from) {
  block_first = from;
  block_keys = static_cast<int>(std::min<std::int64_t>(kKeyBlock, first + keys - from));
  if (CountVisible(sequence, block_first, block_keys) == 0) return false;
  for (int key = 0; key < block_keys + kSpareKeys; ++key) {
    const std::int64_t row = block_first - first + std::min(key, block_keys - 1);
    block_k[key] = reinterpret_cast<const std::byte*>(k.rows + row * k.step);
    block_v[key] = reinterpret_cast<const std::byte*>(v.rows + row * v.step);
  }
  return true;
}

// The softcap's derivative 1 - tanh(x)^2 at x = score / cap, as 4 e / (1 + e)^2 with e = exp(-2 |x|), which has no
// difference of nearly equal numbers.
inline void SoftcapSlope(float cap, int numbers, const float* s, float* slope) {
  const F32 d;
  const V c = hn::Set(d, cap), one = hn::Set(d, 1.0f);
  for (int i = 0; i < numbers; i += kLanes) {
    const V x = hn::Abs(hn::Div(hn::Load(d, s + i), c));
    const V e = Exp(d, hn::Neg(hn::Add(x, x)));
    const V root = hn::Add(one, e);
    hn::Store(hn::Div(hn::Mul(hn::Set(d, 4.0f), e), hn::Mul(root, root)), d, slope + i);
  }
}

// Weights and gradients of keys [from, to) from scores and gradients of weights. Masked edges get the mark, -0, which
// neither can be otherwise.
template <int kVectors>
void Differentiate(const ChunkDesk& desk, const BackwardPanel& mine, int from, int to) {
  constexpr int kWidth = kVectors * kLanes;
  const F32 d;
  const V mark = hn::Set(d, -0.0f), zero = hn::Zero(d), factor = hn::Set(d, desk.scale);
  const V minus_infinity = hn::Set(d, kMinusInfinity);
  const bool capped = desk.problem.softcap > 0, keep = desk.call.gradients.d_bias.data != nullptr;
  V max[kVectors], share[kVectors], delta[kVectors];
#pragma GCC unroll 3
  for (int j = 0; j < kVectors; ++j) {
    max[j] = hn::Load(d, mine.max + j * kLanes);
    share[j] = hn::Load(d, mine.share + j * kLanes);
    delta[j] = hn::Load(d, mine.delta + j * kLanes);
  }
  for (int key = from; key < to; ++key) {
    const float* scores = desk.scores + key * kWidth;
    const std::int64_t out = key * kFactorStep + mine.panel.first_lane;
    V p[kVectors];
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) p[j] = hn::Sub(hn::Load(d, scores + j * kLanes), max[j]);
    ExpOfDifferences(p);
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      const int at = key * kWidth + j * kLanes;
      const auto masked = hn::Eq(hn::Load(d, scores + j * kLanes), minus_infinity);
      const V weight = hn::Mul(p[j], share[j]);
      V change = hn::Mul(weight, hn::Sub(hn::Load(d, desk.products + at), delta[j]));
      if (keep) hn::Store(hn::IfThenElse(masked, mark, hn::Add(change, zero)), d, desk.d_scores + out + j * kLanes);
      if (capped) change = hn::Mul(change, hn::Load(d, desk.slopes + at));
      change = hn::Add(hn::Mul(change, factor), zero);  // no -0
      hn::Store(hn::IfThenElse(masked, mark, weight), d, desk.weights + out + j * kLanes);
      hn::Store(hn::IfThenElse(masked, mark, change), d, desk.changes + out + j * kLanes);
    }
  }
}

// Passes 1 to 3 of a panel: weights and gradients of keys [from, to) of the block.
template <int kVectors>
void WeighAndDifferentiate(const ChunkDesk& desk, const BackwardPanel& mine, int from, int to) {
  constexpr int kRows = TileRows(kVectors);
  constexpr int kWidth = kVectors * kLanes;
  const F32 d;
  const V scale = hn::Set(d, desk.scale), one = hn::Set(d, 1.0f);
  for (int key = from; key < to; key += kRows) {
    ScoreTile<kVectors>(desk.block_k + key, desk.channels, mine.q, scale, desk.scores + key * kWidth);
  }
  for (int key = from; key < to; key += kRows) {
    ScoreTile<kVectors>(desk.block_v + key, desk.value_channels, mine.d_out, one, desk.products + key * kWidth);
  }
  float* scores = desk.scores + from * kWidth;
  if (desk.problem.softcap > 0) {
    const int numbers = (to - from) * kWidth;
    SoftcapSlope(desk.problem.softcap, numbers, scores, desk.slopes + from * kWidth);
    Softcap(desk.problem.softcap, numbers, scores);
  }
  const std::int64_t first = desk.block_first + from;
  const int keys = to - from;
  const bool hidden = CountVisible(desk.sequence, first, keys) != keys;
  BiasAndMask<kVectors>(*desk.lanes, mine.panel, first, keys, hidden, scores);
  const bool drops = desk.problem.dropout.probability > 0;
  if (drops) Drop<kVectors>(*desk.lanes, mine.panel, first, keys, desk.products + from * kWidth, kWidth);
  Differentiate<kVectors>(desk, mine, from, to);
  if (drops) {
    float* weights = desk.weights + from * kFactorStep + mine.panel.first_lane;
    Drop<kVectors>(*desk.lanes, mine.panel, first, keys, weights, kFactorStep);
  }
}

// Marks at the keys of the block that a panel does not look at.
inline void MarkUnseen(const ChunkDesk& desk, const PanelKeys& panel, int width) {
  const auto mark = [&](int begin, int end) {
    for (int key = begin; key < end; ++key) {
      std::fill_n(desk.weights + key * kFactorStep + panel.first_lane, width, -0.0f);
      std::fill_n(desk.changes + key * kFactorStep + panel.first_lane, width, -0.0f);
    }
  };
  mark(0, panel.from);
  mark(panel.to, desk.block_keys);
}

// dS of all panels, key by key and lane by lane: an order that does not depend on how wide panels are.
inline void AddBiasGradient(const ChunkDesk& desk, std::span<const PanelKeys> panels) {
  const View<float, 3>& d_bias = desk.call.gradients.d_bias;
  const bool by_position = desk.problem.mask.bias_by_position;
  for (int key = 0; key < desk.block_keys; ++key) {
    for (const PanelKeys& panel : panels) {
      if (key < panel.from || key >= panel.to) continue;
      const float* d_score = desk.d_scores + key * kFactorStep;
      for (int lane = panel.first_lane; lane < panel.first_lane + panel.lanes; ++lane) {
        if (std::bit_cast<std::int32_t>(d_score[lane]) == kMasked) continue;
        const std::int64_t row = desk.lanes->row[lane];
        d_bias(by_position ? desk.problem.rows[row].position : row, desk.lanes->head[lane], desk.block_first + key) +=
            d_score[lane];
      }
    }
  }
}

// All lanes of the block in work against the key block in work.
inline void BackwardBlock(ChunkDesk& desk) {
  std::vector<PanelKeys> panels;
  bool any = false;
  for (const BackwardPanel& mine : desk.panels) {
    const auto inside = [&](std::int64_t key) {
      return static_cast<int>(std::clamp<std::int64_t>(key - desk.block_first, 0, desk.block_keys));
    };
    int from = inside(mine.panel.reach.begin), to = inside(mine.panel.reach.end);
    if (from >= to) from = to = 0;
    any |= from < to;
    panels.push_back({mine.panel.first_lane, mine.panel.lanes, from, to});
  }
  if (!any) return;
  for (std::size_t p = 0; p < panels.size(); ++p) {
    const auto [unused, lanes, from, to] = panels[p];
    const BackwardPanel& mine = desk.panels[p];
    if (from < to && mine.panel.vectors == 1) WeighAndDifferentiate<1>(desk, mine, from, to);
    if (from < to && mine.panel.vectors == 2) WeighAndDifferentiate<2>(desk, mine, from, to);
    if (from < to && mine.panel.vectors == 3) WeighAndDifferentiate<3>(desk, mine, from, to);
    MarkUnseen(desk, panels[p], mine.width());
  }
  if (desk.call.gradients.d_bias.data != nullptr) AddBiasGradient(desk, panels);
  const std::int64_t row = desk.block_first - desk.first;
  const Gradients& wanted = desk.call.gradients;
  if (!wanted.d_v.empty()) {  // pass 4
    AddOuter(!desk.d_out.finite, OverLanes{desk.weights, panels, desk.d_out.rows, desk.d_out.step}, desk.block_keys,
             desk.value_channels, desk.d_v.rows + row * desk.d_v.step, desk.d_v.step);
  }
  if (!wanted.d_k.empty()) {
    AddOuter(!desk.q.finite, OverLanes{desk.changes, panels, desk.q.rows, desk.q.step}, desk.block_keys, desk.channels,
             desk.d_k.rows + row * desk.d_k.step, desk.d_k.step);
  }
  if (desk.d_q != nullptr) {  // pass 5
    for (const PanelKeys& panel : panels) {
      if (panel.from >= panel.to) continue;
      AddOuter(!desk.k.finite, OverKeys{desk.changes, panel, desk.k.rows + row * desk.k.step, desk.k.step}, panel.lanes,
               desk.channels, desk.d_q + panel.first_lane * desk.k.step, desk.k.step);
    }
  }
}

// A row of a gradient that is done. + 0: whether a zero is -0 may depend on masked edges.
inline void WriteRow(const float* from, const View<float, 3>& gradient, float* to) {
  const F32 d;
  std::int64_t c = 0;
  if (gradient.stride[2] == 1) {
    for (; c + kLanes <= gradient.shape[2]; c += kLanes)
      hn::StoreU(hn::Add(hn::Load(d, from + c), hn::Zero(d)), d, to + c);
  }
  for (; c < gradient.shape[2]; ++c) to[c * gradient.stride[2]] = from[c] + 0.0f;
}

inline void WriteKeyRows(const RowCopies& from, std::int64_t first, std::int64_t keys, std::int64_t kv_head,
                         const View<float, 3>& to) {
  for (std::int64_t key = 0; key < keys; ++key) {
    WriteRow(from.rows + key * from.step, to, to.data + (first + key) * to.stride[0] + kv_head * to.stride[1]);
  }
}

inline void BackwardChunk(const BackwardCall& call, const BackwardUnit& unit, std::int64_t chunk, Scratch& scratch) {
  ChunkDesk desk(call, unit, chunk, scratch);
  for (std::size_t index = 0; index < unit.blocks.size(); ++index) {
    const LaneBlock& block = unit.blocks[index];
    if (unit.partial != nullptr) {
      const std::int64_t lane = chunk * unit.lanes + static_cast<std::int64_t>(index) * kLaneBlock;
      std::fill_n(unit.partial + lane * desk.k.step, block.lanes() * desk.k.step, 0.0f);
    }
    const KeyRange reach = block.reach();
    const std::int64_t begin = std::max(reach.begin / kKeyBlock * kKeyBlock, desk.first);
    const std::int64_t end = std::min(reach.end, desk.first + desk.keys);
    if (begin >= end) continue;
    desk.sit_down(index, chunk);
    for (std::int64_t key = begin; key < end; key += kKeyBlock) {
      if (desk.find(key)) BackwardBlock(desk);
    }
  }
  if (!call.gradients.d_k.empty()) {
    WriteKeyRows(desk.d_k, desk.first, desk.keys, unit.kv_head, call.gradients.d_k[unit.sequence]);
  }
  if (!call.gradients.d_v.empty()) {
    WriteKeyRows(desk.d_v, desk.first, desk.keys, unit.kv_head, call.gradients.d_v[unit.sequence]);
  }
}

inline void BackwardDeltas(const BackwardCall& call, BackwardUnit& unit, std::size_t index, Scratch& scratch) {
  const F32 d;
  const LaneBlock& block = unit.blocks[index];
  const std::int64_t channels = call.problem.value_channels;
  const std::int64_t first_lane = static_cast<std::int64_t>(index) * kLaneBlock;
  scratch.reset(2 * RoundUp(channels * 3 * kLanes));
  float* out = scratch.take(RoundUp(channels * 3 * kLanes));
  float* d_out = scratch.take(RoundUp(channels * 3 * kLanes));
  for (const Panel& panel : panels_of(block, kLanes)) {
    const int width = panel.vectors * kLanes;
    PackLanes(block, panel, call.out, out);
    PackLanes(block, panel, call.d_out, d_out);
    HWY_ALIGN float delta[3 * kLanes];
    HWY_ALIGN float sink[3 * kLanes];
    // The chain of pass 2, so that a row that reads one key only takes equal numbers from each other.
    for (int j = 0; j < width; j += kLanes) {
      V sum = hn::Zero(d);
      for (std::int64_t c = 0; c < channels; ++c) {
        // An output of 0 adds nothing, not even 0 x NaN: it may be that of a row that saw nothing.
        const V o = hn::Load(d, out + c * width + j);
        const V next = Fma(hn::Load(d, d_out + c * width + j), o, sum);
        sum = hn::IfThenElse(hn::Eq(o, hn::Zero(d)), sum, next);
      }
      hn::Store(sum, d, delta + j);
    }
    for (int lane = 0; lane < width; ++lane) {
      const int source = panel.first_lane + std::min(lane, panel.lanes - 1);
      const std::int64_t row = block.row[source], head = block.head[source];
      if (call.d_log_sum_exp.data != nullptr) delta[lane] -= call.d_log_sum_exp(row, head);
      if (lane < panel.lanes) unit.delta[first_lane + source] = delta[lane];
      if (!unit.sink.empty()) sink[lane] = call.problem.sinks[head] - call.softmax(row, head).max;
    }
    if (unit.sink.empty()) continue;
    for (int j = 0; j < width; j += kLanes) hn::Store(Exp(d, hn::Load(d, sink + j)), d, sink + j);
    for (int lane = 0; lane < panel.lanes; ++lane) {
      const int source = panel.first_lane + lane;
      const float score = call.problem.sinks[block.head[source]];
      const float share = sink[lane] / call.softmax(block.row[source], block.head[source]).sum;
      unit.sink[first_lane + source] = score == kMinusInfinity ? 0.0f : -(share * delta[lane]);
    }
  }
}

inline void BackwardQueries(const BackwardCall& call, const BackwardUnit& unit, std::size_t index) {
  const F32 d;
  const LaneBlock& block = unit.blocks[index];
  const View<float, 3>& d_q = call.gradients.d_q;
  const std::int64_t channels = d_q.shape[2], step = row_step(channels);
  HWY_ALIGN float sum[512];
  for (int lane = 0; lane < block.lanes(); ++lane) {
    const float* part = unit.partial + (static_cast<std::int64_t>(index) * kLaneBlock + lane) * step;
    for (std::int64_t c = 0; c < channels; c += kLanes) {
      V v = hn::Zero(d);
      for (std::int64_t chunk = 0; chunk < unit.chunks; ++chunk) {
        v = hn::Add(v, hn::Load(d, part + chunk * unit.lanes * step + c));
      }
      hn::Store(v, d, sum + c);
    }
    WriteRow(sum, d_q, d_q.data + block.row[lane] * d_q.stride[0] + block.head[lane] * d_q.stride[1]);
  }
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
