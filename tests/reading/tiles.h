#pragma once
// Attention patterns made from given scores, in float64 (the truth) and in f32, cut into tiles as read() would, in any
// shape and on any thread: readers are tested without the kernel that feeds them.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "attention/read.h"
#include "parallel/parallel_for.h"
#include "support/targets.h"

namespace regard::testing {

struct SceneOptions {
  std::int64_t rows = 0, keys = 0, heads = 1, kv_heads = 1;
  std::int64_t first_position = 0;  // of row 0
  bool causal = true;
  std::int64_t window = 0;  // 0: none
  bool sinks = false;
  float spread = 3;   // scores are in +-spread
  float hidden = 0;   // share of keys that nobody sees
  bool flat = false;  // all scores equal: rows read evenly
};

class Scene {
 public:
  Scene(const SceneOptions& options, std::uint64_t seed) : options(options) {
    Numbers numbers(seed);
    const std::int64_t T = options.rows, S = options.keys, H = options.heads;
    if (options.sinks) sinks = numbers.vector(H, options.spread);
    std::vector<bool> hidden(S);
    for (std::int64_t j = 0; j < S; ++j) hidden[j] = numbers.next() * 0.5f + 0.5f < options.hidden;
    score.assign(T * H * S, -std::numeric_limits<float>::infinity());
    for (std::int64_t i = 0; i < T; ++i) {
      rows.push_back({0, 0, options.first_position + i});
      for (std::int64_t h = 0; h < H; ++h) {
        for (std::int64_t j = 0; j < S; ++j) {
          const float s = options.flat ? 0.25f : numbers.next(options.spread);
          if (!hidden[j] && sees(rows[i].position, j)) score[at(i, h, j)] = s;
        }
      }
    }
    normalise();
  }

  std::int64_t at(std::int64_t i, std::int64_t h, std::int64_t j) const {
    return (i * options.heads + h) * options.keys + j;
  }
  bool sees(std::int64_t position, std::int64_t j) const {
    return (!options.causal || j <= position) && (options.window == 0 || j > position - options.window);
  }

  // Weights and softmax from the scores.
  void normalise() {
    const std::int64_t T = options.rows, S = options.keys, H = options.heads;
    weight.assign(score.size(), 0.0f);
    truth.assign(score.size(), 0.0);
    lse_truth.assign(T * H, -std::numeric_limits<double>::infinity());
    softmax.assign(T * H, {});
    for (std::int64_t i = 0; i < T; ++i) {
      for (std::int64_t h = 0; h < H; ++h) {
        const float* s = &score[at(i, h, 0)];
        RowSoftmax& of_row = softmax[i * H + h];
        double max = *std::max_element(s, s + S), sum = 0;
        if (options.sinks) max = std::max<double>(max, sinks[h]);
        of_row.max = static_cast<float>(max);
        if (std::isinf(max)) continue;
        for (std::int64_t j = 0; j < S; ++j) {
          sum += std::exp(s[j] - max);
          of_row.sum += std::exp(s[j] - of_row.max);
        }
        if (options.sinks) {
          sum += std::exp(sinks[h] - max);
          of_row.sum += std::exp(sinks[h] - of_row.max);
        }
        lse_truth[i * H + h] = max + std::log(sum);
        for (std::int64_t j = 0; j < S; ++j) {
          truth[at(i, h, j)] = std::exp(s[j] - max) / sum;
          weight[at(i, h, j)] = std::isinf(s[j]) ? 0.0f : std::exp(s[j] - of_row.max) / of_row.sum;
        }
      }
    }
  }

  // A pass over rows [begin, end), in tiles of up to `lanes` lanes, the parts of the work in an order that `seed`
  // shuffles and on whatever thread. prepare(problem) aims the readers.
  void show(std::int64_t begin, std::int64_t end, const std::function<void(const Problem&)>& prepare,
            std::span<Reader* const> readers, int lanes = 24, std::uint64_t seed = 1) const {
    const std::int64_t group = options.heads / options.kv_heads;
    Sequence sequence;
    sequence.length = options.keys;
    Problem problem;
    problem.q = {nullptr, {end - begin, options.heads, 1}};
    problem.rows = std::span(rows).subspan(begin, end - begin);
    problem.sequences = {&sequence, 1};
    problem.kv_heads = options.kv_heads;
    problem.mask.causal = options.causal;
    if (options.window > 0) problem.mask.window_left = options.window;
    problem.sinks = sinks;
    prepare(problem);
    for (Reader* reader : readers) reader->begin(problem, thread_count());
    const std::int64_t all = (end - begin) * group, parts = (all + lanes - 1) / lanes;
    std::vector<std::int64_t> order;
    for (std::int64_t part = 0; part < parts * options.kv_heads; ++part) order.push_back(part);
    Numbers numbers(seed);
    for (std::int64_t n = std::ssize(order); n > 1; --n) std::swap(order[n - 1], order[numbers.below(n)]);
    parallel_for(std::ssize(order), [&](std::int64_t i, int thread) {
      const std::int64_t first = order[i] % parts * lanes;
      tiles(begin, order[i] / parts, first, std::min<std::int64_t>(lanes, all - first), readers, thread);
    });
    for (Reader* reader : readers) reader->finish();
  }

  SceneOptions options;
  std::vector<QueryRow> rows;       // [T]
  std::vector<float> sinks;         // [H]
  std::vector<float> score;         // [T, H, S]
  std::vector<float> weight;        // [T, H, S]
  std::vector<double> truth;        // [T, H, S] weights
  std::vector<double> lse_truth;    // [T, H]
  std::vector<RowSoftmax> softmax;  // [T, H]

 private:
  void tiles(std::int64_t begin, std::int64_t kv_head, std::int64_t first, std::int64_t lanes,
             std::span<Reader* const> readers, int thread) const {
    const std::int64_t group = options.heads / options.kv_heads, stride = (lanes + 15) / 16 * 16;
    std::vector<std::int64_t> row(lanes);
    std::vector<std::int32_t> head(lanes);
    std::vector<RowSoftmax> of_lane(lanes);
    for (std::int64_t i = 0; i < lanes; ++i) {
      row[i] = (first + i) / group;
      head[i] = static_cast<std::int32_t>(kv_head * group + (first + i) % group);
      of_lane[i] = softmax[(begin + row[i]) * options.heads + head[i]];
    }
    // What is beyond the last lane may be anything: make it as bad as can be.
    const float bad = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> w(128 * stride, bad), s(128 * stride, bad);
    for (std::int64_t block = 0; block < options.keys; block += 128) {
      // A tile may leave out keys at either end that no lane sees.
      std::int64_t from = options.keys, to = 0;
      for (std::int64_t j = block; j < std::min(block + 128, options.keys); ++j) {
        for (std::int64_t i = 0; i < lanes; ++i) {
          if (std::isinf(score[at(begin + row[i], head[i], j)])) continue;
          from = std::min(from, j);
          to = j + 1;
        }
      }
      if (from >= to) continue;
      for (std::int64_t j = from; j < to; ++j) {
        for (std::int64_t i = 0; i < lanes; ++i) {
          w[(j - from) * stride + i] = weight[at(begin + row[i], head[i], j)];
          s[(j - from) * stride + i] = score[at(begin + row[i], head[i], j)];
        }
      }
      WeightTile tile;
      tile.kv_head = kv_head;
      tile.key_begin = from;
      tile.keys = to - from;
      tile.lanes = static_cast<int>(lanes);
      tile.stride = static_cast<int>(stride);
      tile.weight = w.data();
      tile.score = s.data();
      tile.row = row.data();
      tile.head = head.data();
      tile.softmax = of_lane.data();
      for (Reader* reader : readers) reader->tile(tile, thread);
    }
  }
};

// Patterns of every kind: lengths around the blocks of 128 keys, groups, windows, sinks, hidden keys, both directions.
inline std::vector<Scene> all_kinds() {
  std::vector<Scene> scenes;
  const auto add = [&](SceneOptions options) { scenes.emplace_back(options, 7 + scenes.size()); };
  add({.rows = 1, .keys = 1});
  add({.rows = 40, .keys = 40, .heads = 3, .kv_heads = 1});
  add({.rows = 130, .keys = 130, .heads = 4, .kv_heads = 2});
  add({.rows = 150, .keys = 150, .heads = 9, .kv_heads = 3});
  add({.rows = 33, .keys = 300, .heads = 5, .kv_heads = 1, .first_position = 267});
  add({.rows = 200, .keys = 200, .heads = 6, .kv_heads = 6, .window = 50});
  add({.rows = 64, .keys = 64, .heads = 8, .kv_heads = 2, .sinks = true});
  add({.rows = 60, .keys = 60, .heads = 7, .kv_heads = 1, .hidden = 0.4f});
  add({.rows = 30, .keys = 90, .heads = 2, .kv_heads = 1, .causal = false});
  add({.rows = 20, .keys = 260, .heads = 11, .kv_heads = 1, .first_position = 240, .window = 9, .sinks = true});
  add({.rows = 90, .keys = 90, .heads = 2, .kv_heads = 2, .spread = 60});  // rows that read one key and little else
  add({.rows = 6, .keys = 6, .heads = 71, .kv_heads = 1});                 // a row's heads do not fit into one tile
  return scenes;
}

// How a pass over a scene is cut up. None of it may change a bit.
struct Cut {
  std::int64_t chunk = 1 << 20;  // rows per pass
  int lanes = 24;                // per tile
  std::uint64_t seed = 1;        // order of the work
};

}  // namespace regard::testing
