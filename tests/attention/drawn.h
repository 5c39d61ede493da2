#pragma once
// Random problems: heads of any size, with keys and values that lie in memory in every way, masks of every kind.

#include <array>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "attention/support.h"

namespace regard::test {

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  bool one_in(unsigned n) { return random_() % n == 0; }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  template <typename T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[random_() % choices.size()];
  }
  float normal() { return normal_(random_); }

 private:
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
};

struct Drawn {
  std::unique_ptr<TestProblem> made;
  std::vector<float> q_memory;
};

inline DType draw_dtype(Dice& dice) { return dice.of({DType::f32, DType::f32, DType::f16, DType::bf16}); }

// Queries in another order of axes, backwards, or with gaps.
inline void restride_queries(Drawn& drawn, Dice& dice) {
  Problem& problem = drawn.made->problem;
  const auto [rows, heads, channels] = problem.q.shape;
  if (rows * heads == 0) return;
  std::array<std::int64_t, 3> stride{};
  std::int64_t origin = 0;
  switch (dice.below(4)) {
    case 0:
      return;
    case 1:
      stride = {channels, rows * channels, 1};
      break;  // [H, rows, D]
    case 2:
      stride = {heads * (2 * channels + 1), 2 * channels, 2};
      break;  // every other number, rows padded
    default:
      stride = {-heads * channels, -channels, -1};
      origin = rows * heads * channels - 1;
  }
  drawn.q_memory.assign(static_cast<std::size_t>(rows * heads * (2 * channels + 1)), 99.0f);
  const View<float, 3> to(drawn.q_memory.data() + origin, problem.q.shape, stride);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t d = 0; d < channels; ++d) to(r, h, d) = problem.q(r, h, d);
    }
  }
  problem.q = to;
}

// Values of another dtype and layout than keys; now and then a stride of 0.
inline void restride_keys_and_values(TestProblem& made, Dice& dice) {
  for (std::size_t i = 0; i < made.sequences.size(); ++i) {
    Shape other = made.shape;
    other.dtype = draw_dtype(dice);
    other.layout = static_cast<Layout>(dice.below(6));
    other.page_rows = dice.of<std::int64_t>({1, 3, 64, 1000});
    made.values[i] = StoredRows(std::vector<float>(made.values[i].numbers), made.sequences[i].length,
                                made.shape.kv_heads, made.shape.value_channels, other);
    made.sequences[i].v = made.values[i].rows;
    for (Rows* rows : {&made.sequences[i].k, &made.sequences[i].v}) {
      if (rows->row_stride < 0 || !dice.one_in(6)) continue;
      if (dice.one_in(2)) rows->head_stride = 0;
      if (dice.one_in(3)) rows->row_stride = 0;
      if (dice.one_in(3)) rows->inner_stride = 0;
    }
  }
}

inline void draw_bias(TestProblem& made, Dice& dice) {
  std::int64_t longest = 0;
  for (std::int64_t length : made.shape.lengths) longest = std::max(longest, length);
  const std::int64_t rows = made.problem.q.shape[0], heads = made.shape.heads;
  if (longest == 0) return;
  // Each axis full or broadcast, and rows of keys with room behind them.
  const bool by_row = dice.one_in(2), by_head = dice.one_in(2), by_key = !dice.one_in(3);
  const std::int64_t padded = longest + dice.below(4);
  Tensor<float, 3> bias({by_row ? rows : 1, by_head ? heads : 1, by_key ? padded : 1});
  for (float& b : std::span(bias.data(), bias.size())) b = dice.one_in(7) && by_key ? -kInfinity : dice.normal();
  made.bias(std::move(bias));
  View<const float, 3>& view = made.problem.mask.bias;
  view.shape = {rows, heads, longest};
  if (!by_row) view.stride[0] = 0;
  if (!by_head) view.stride[1] = 0;
  if (!by_key) view.stride[2] = 0;
}

inline void draw_edges(TestProblem& made, Dice& dice) {
  std::vector<EdgeEdit> edges;
  for (std::int64_t r = 0; r < made.problem.q.shape[0]; ++r) {
    const std::int64_t length = made.shape.lengths[made.query_rows[r].sequence];
    for (std::int32_t h = 0; h < made.shape.heads; ++h) {
      for (std::int64_t key = dice.below(60); key < length && !dice.one_in(4); key += dice.below(40)) {
        const std::int64_t end = std::min(length, key + 1 + dice.below(90));
        edges.push_back({r, h, key, end, dice.one_in(2) ? -kInfinity : dice.normal()});
        key = end;
      }
    }
  }
  made.edges(edges);
}

inline void draw_keys_that_are_there(TestProblem& made, Dice& dice) {
  for (std::size_t i = 0; i < made.sequences.size(); ++i) {
    const std::int64_t length = made.shape.lengths[i];
    if (dice.one_in(3)) {
      std::vector<std::uint8_t> visible(static_cast<std::size_t>(length));
      const unsigned share = static_cast<unsigned>(1 + dice.below(4));
      for (auto& key : visible) key = dice.one_in(share) ? 0 : 255;
      made.visible(i, visible);
    }
    if (dice.one_in(3)) {
      std::vector<std::int32_t> segment(static_cast<std::size_t>(length));
      const bool runs = dice.one_in(2);
      for (std::int64_t j = 0; j < length; ++j)
        segment[j] = static_cast<std::int32_t>(runs ? j * 3 / length : dice.below(3));
      made.segments(i, segment);
    }
  }
}

inline Drawn draw(std::int64_t channels, std::int64_t value_channels, unsigned seed) {
  Dice dice(seed);
  Shape shape;
  shape.seed = seed;
  shape.channels = channels;
  shape.value_channels = value_channels;
  shape.kv_heads = dice.of<std::int64_t>({1, 1, 2, 3});
  shape.heads = shape.kv_heads * dice.of<std::int64_t>({1, 1, 2, 3, 5});
  shape.dtype = draw_dtype(dice);
  shape.layout = static_cast<Layout>(dice.below(6));
  shape.page_rows = dice.of<std::int64_t>({1, 2, 7, 128, 200});
  shape.spread = dice.of({1.0f, 4.0f}) / std::sqrt(static_cast<float>(channels));
  shape.queries.clear();
  shape.lengths.clear();
  // So many rows that a problem takes the slowest target some milliseconds.
  std::int64_t budget = 400'000;
  for (std::int64_t i = dice.of<std::int64_t>({1, 1, 2, 3}); i > 0; --i) {
    const std::int64_t length = dice.of<std::int64_t>({0, 1, 3, 17, 127, 128, 129, 300});
    const std::int64_t row = std::max<std::int64_t>(1, length) * shape.heads * (channels + value_channels);
    const std::int64_t queries = std::min(dice.of<std::int64_t>({0, 1, 2, 5, 13, 40}), 1 + budget / row);
    budget = std::max<std::int64_t>(0, budget - queries * row);
    shape.lengths.push_back(length);
    shape.queries.push_back(queries);
  }
  Drawn drawn{std::make_unique<TestProblem>(shape), {}};
  TestProblem& made = *drawn.made;
  Problem& problem = made.problem;
  problem.mask.causal = dice.one_in(2);
  if (dice.one_in(3)) problem.mask.window_left = dice.of<std::int64_t>({1, 2, 30, 128, 129});
  if (dice.one_in(3)) problem.mask.window_right = dice.of<std::int64_t>({0, 1, 40});
  if (dice.one_in(4)) problem.scale = dice.of({0.0f, -0.7f, 1.0f, 0.1f});
  if (dice.one_in(4)) problem.softcap = dice.of({0.5f, 5.0f, 50.0f});
  if (dice.one_in(3)) {
    std::vector<float> sinks(static_cast<std::size_t>(shape.heads));
    for (float& sink : sinks) sink = dice.one_in(5) ? -kInfinity : dice.normal();
    made.sinks(sinks);
  }
  const bool top_left = dice.one_in(3);
  std::vector<std::int64_t> next(shape.lengths.size(), 0);
  for (QueryRow& row : made.query_rows) {
    if (top_left) row.position = next[row.sequence]++;
    if (dice.one_in(8)) row.position += dice.below(400) - 200;
    row.segment = static_cast<std::int32_t>(dice.below(4));
  }
  restride_keys_and_values(made, dice);
  restride_queries(drawn, dice);
  draw_keys_that_are_there(made, dice);
  if (dice.one_in(3)) draw_bias(made, dice);
  if (dice.one_in(3)) draw_edges(made, dice);
  return drawn;
}

}  // namespace regard::test
