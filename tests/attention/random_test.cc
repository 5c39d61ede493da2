// Random problems of every size of head, with keys and values that lie in memory in every way, against the float64
// reference: law 1, for out, log-sum-exp, what RowSoftmax says, and the weights on every way to ask for them.

#include <gtest/gtest.h>

#include "attention/drawn.h"
#include "attention/forms.h"

namespace regard::test {
namespace {

constexpr std::int64_t kChannels[] = {1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 80, 96, 128, 200, 256, 512};

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
