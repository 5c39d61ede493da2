// Random problems of every size of head, with keys and values that lie in memory in every way, against the float64
// reference: law 1, for out, log-sum-exp, what RowSoftmax says, and the weights on every way to ask for them.

#include <gtest/gtest.h>

#include "attention/forms.h"

namespace regard::test {
namespace {

constexpr std::int64_t kChannels[] = {1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 80, 96, 128, 200, 256, 512};

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

DType draw_dtype(Dice& dice) { return dice.of({DType::f32, DType::f32, DType::f16, DType::bf16}); }

// Queries in another order of axes, backwards, or with gaps.
void restride_queries(Drawn& drawn, Dice& dice) {
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
void restride_keys_and_values(TestProblem& made, Dice& dice) {
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

void draw_bias(TestProblem& made, Dice& dice) {
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

void draw_edges(TestProblem& made, Dice& dice) {
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

void draw_keys_that_are_there(TestProblem& made, Dice& dice) {
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

Drawn draw(std::int64_t channels, std::int64_t value_channels, unsigned seed) {
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

// Results written to [H, E, rows] with gaps are those written to [rows, H, E].
void expect_same_in_other_strides(const Problem& problem, const Result& expected) {
  const auto [rows, heads, unused] = problem.q.shape;
  const std::int64_t channels = problem.value_channels, step = 2 * rows + 1;
  Tensor<float, 3> memory({heads, channels, step});
  Tensor<RowSoftmax, 2> softmax({heads, rows});
  forward(problem, View<float, 3>(memory.data(), {rows, heads, channels}, {2, channels * step, step}),
          View<RowSoftmax, 2>(softmax.data(), {rows, heads}, {1, rows}));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) {
      ASSERT_EQ(softmax(h, r).max, expected.softmax(r, h).max);
      ASSERT_EQ(softmax(h, r).sum, expected.softmax(r, h).sum);
      for (std::int64_t e = 0; e < channels; ++e) ASSERT_EQ(memory(h, e, 2 * r), expected.out(r, h, e));
    }
  }
}

// weights() of chosen rows, heads and keys, some of them twice, are numbers of the full pattern.
void expect_rectangle(const Problem& problem, const Result& result, const Tensor<float, 3>& whole, Dice& dice) {
  const auto [all_rows, all_heads, longest] = whole.shape();
  if (whole.size() == 0) return;
  std::vector<std::int64_t> rows;
  std::vector<std::int32_t> heads;
  for (int i = 0; i < 4; ++i) rows.push_back(dice.below(all_rows));
  for (int i = 0; i < 3; ++i) heads.push_back(static_cast<std::int32_t>(dice.below(all_heads)));
  const std::int64_t begin = dice.below(longest), end = begin + dice.below(longest - begin + 1);
  const Tensor<float, 3> part = weights(problem, std::as_const(result.softmax).view(), rows, heads, begin, end);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t h = 0; h < heads.size(); ++h) {
      for (std::int64_t j = begin; j < end; ++j) ASSERT_EQ(part(r, h, j - begin), whole(rows[r], heads[h], j));
    }
  }
}

void check(std::int64_t channels, std::int64_t value_channels, unsigned seed) {
  const Drawn drawn = draw(channels, value_channels, seed);
  const Problem& problem = drawn.made->problem;
  const ReferenceAttention truth = reference_attention(problem);
  const Errors limit = allowed(problem, truth);
  std::optional<Result> first;
  on_every_form([&](const std::string& form) {
    SCOPED_TRACE("D = " + std::to_string(channels) + ", E = " + std::to_string(value_channels) + ", seed " +
                 std::to_string(seed) + " on " + form);
    Result result = run(problem);
    const Tensor<float, 3> weight = read_pattern(problem, result);
    const Errors errors = errors_of(result, weight, truth);
    EXPECT_LE(errors.out, limit.out);
    EXPECT_LE(errors.weight, limit.weight);
    EXPECT_LE(errors.log_sum_exp, limit.log_sum_exp);
    for (std::int64_t i = 0; i < result.softmax.size(); ++i) {
      const RowSoftmax softmax = result.softmax.data()[i];
      const double expected = truth.log_sum_exp.data()[i];
      EXPECT_EQ(softmax.sum == 0, expected == -kInfinity);
      if (softmax.sum == 0) {
        EXPECT_EQ(softmax.max, -kInfinity);
      } else {
        EXPECT_LE(std::abs(softmax.max + std::log(double{softmax.sum}) - expected), limit.log_sum_exp);
      }
    }
    for (std::int64_t i = 0; i < weight.size(); ++i) {
      if (truth.weight.data()[i] != 0) continue;
      ASSERT_EQ(weight.data()[i], 0) << "a masked key has a weight";
    }
    if (!first) {
      EXPECT_TRUE(same_bits(weight, pattern(problem, result)));
      expect_same_in_other_strides(problem, result);
      Dice dice(seed);
      expect_rectangle(problem, result, weight, dice);
      first = std::move(result);
    } else {
      EXPECT_TRUE(same_bits(*first, result));
    }
  });
}

// Every D beside some E, and every E beside some D.
TEST(Random, EverySizeOfHead) {
  const regard::testing::Restore restore;
  constexpr std::size_t kCount = std::size(kChannels);
  for (std::size_t d = 0; d < kCount; ++d) {
    for (const std::size_t shift : {0u, 5u, 8u}) {
      check(kChannels[d], kChannels[(d + shift) % kCount], static_cast<unsigned>(1000 * d + shift));
      if (HasFailure()) return;
    }
  }
}

TEST(Random, ManyMasksAndLayouts) {
  const regard::testing::Restore restore;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    Dice dice(seed);
    check(dice.of<std::int64_t>({1, 3, 8, 16, 20, 33}), dice.of<std::int64_t>({1, 2, 5, 8, 12, 19, 32}), 50'000 + seed);
    if (HasFailure()) return;
  }
}

// One row is so few numbers that its largest error is a matter of luck, the kernel's and the plain one's: the largest
// of many rows is not. Here without the allowance for one more rounding.
TEST(Random, ManySingleRowsTogether) {
  for (const std::int64_t length : {20, 140, 1000}) {
    Errors fast, plain;
    for (unsigned seed = 1; seed <= 60; ++seed) {
      Shape shape = shape_of(1, length, 2, 1, 16, 16);
      shape.seed = seed;
      shape.spread = 2;
      const TestProblem made(shape);
      const ReferenceAttention truth = reference_attention(made.problem);
      const Result result = run(made.problem);
      const Errors mine = errors_of(result, pattern(made.problem, result), truth);
      const Errors theirs = plain_errors(made.problem, truth);
      fast = {std::max(fast.out, mine.out), std::max(fast.weight, mine.weight),
              std::max(fast.log_sum_exp, mine.log_sum_exp)};
      plain = {std::max(plain.out, theirs.out), std::max(plain.weight, theirs.weight),
               std::max(plain.log_sum_exp, theirs.log_sum_exp)};
    }
    EXPECT_LE(fast.out, 2 * plain.out) << length;
    EXPECT_LE(fast.weight, 2 * plain.weight) << length;
    EXPECT_LE(fast.log_sum_exp, 2 * plain.log_sum_exp) << length;
  }
}

// The yardstick must be able to fail: an output that is off by a few units in the last place is seen.
TEST(Random, TheYardstickSeesASmallError) {
  Shape shape;
  shape.lengths = {40};
  TestProblem made(shape);
  const ReferenceAttention truth = reference_attention(made.problem);
  const Errors limit = allowed(made.problem, truth);
  Result result = run(made.problem);
  const Tensor<float, 3> weight = pattern(made.problem, result);
  EXPECT_LE(errors_of(result, weight, truth).out, limit.out);
  result.out.data()[3] += 4 * static_cast<float>(limit.out);
  EXPECT_GT(errors_of(result, weight, truth).out, limit.out);
}

}  // namespace
}  // namespace regard::test
