// What other kernels got wrong in their gradients: masked rows, NaN behind masks, large numbers, lengths that fill no
// tile, biases that edges share; and what backward() refuses.

#include <gtest/gtest.h>

#include "attention/backward_support.h"
#include "support/errors.h"

namespace regard::test {
namespace {

template <typename T, int Rank>
bool all_finite(const Tensor<T, Rank>& tensor) {
  return std::all_of(tensor.data(), tensor.data() + tensor.size(), [](float x) { return std::isfinite(x); });
}

bool all_finite(const Grads& grads) {
  bool finite = all_finite(grads.d_q) && all_finite(grads.d_bias) && all_finite(grads.d_sinks);
  for (std::size_t i = 0; i < grads.d_k.size(); ++i) {
    finite = finite && all_finite(grads.d_k[i]) && all_finite(grads.d_v[i]);
  }
  return finite;
}

// All +0, not -0.
bool all_zero(const View<const float, 2>& part) {
  for (std::int64_t i = 0; i < part.shape[0]; ++i)
    for (std::int64_t c = 0; c < part.shape[1]; ++c)
      if (part(i, c) != 0 || std::signbit(part(i, c))) return false;
  return true;
}
template <typename T>
View<const T, 3> seen(const Tensor<T, 3>& tensor) {
  return tensor.view();
}

TEST(BackwardCases, RowsThatSeeNothingHaveNoGradient) {
  TestProblem made(shape_of(9, 200, 4, 2, 7, 5));
  made.problem.mask.causal = true;
  for (QueryRow& row : made.query_rows) row.position = &row < &made.query_rows[3] ? -1 : 150;
  const Grads grads = gradients_on_every_form(made, incoming(made.problem, 2));
  EXPECT_TRUE(all_finite(grads));
  for (int row = 0; row < 3; ++row) EXPECT_TRUE(all_zero(seen(grads.d_q)[row])) << row;
  EXPECT_FALSE(all_zero(seen(grads.d_q)[3]));
  for (int key = 151; key < 200; ++key) {
    EXPECT_TRUE(all_zero(seen(grads.d_k[0])[key])) << key;
    EXPECT_TRUE(all_zero(seen(grads.d_v[0])[key])) << key;
  }
}

// Queries, incoming gradients, keys and values that are not finite, all of them behind masks: the gradients of what is
// seen have the bits they have without them.
TEST(BackwardCases, WhatIsMaskedMayHoldAnything) {
  for (const float poison : {kNaN, kInfinity, -kInfinity}) {
    for (const bool sinks : {false, true}) {
      const auto make = [&](TestProblem& made) {
        made.problem.mask.causal = true;
        for (int row = 0; row < 4; ++row) made.query_rows[row].position = -5;
        std::vector<std::uint8_t> visible(300, 1);
        for (int key = 0; key < 300; key += 7) visible[key] = 0;
        made.visible(0, visible);
        made.edges({{10, 0, 0, 300, -kInfinity}, {10, 1, 0, 300, -kInfinity}});
        Tensor<float, 3> bias({40, 2, 300});
        for (std::int64_t j = 50; j < 60; ++j)
          for (std::int64_t r = 0; r < 40; ++r) bias(r, 0, j) = bias(r, 1, j) = -kInfinity;
        made.bias(std::move(bias));
        if (sinks) made.sinks({0.5f, -1.0f});
      };
      TestProblem clean(shape_of(40, 300)), dirty(shape_of(40, 300));
      make(clean);
      make(dirty);
      Incoming clean_in = incoming(clean.problem, 4), dirty_in = incoming(dirty.problem, 4);
      for (int row : {0, 1, 2, 3, 10}) {
        for (int h = 0; h < 2; ++h) {
          for (int c = 0; c < 6; ++c) dirty.q(row, h, c) = poison;
          for (int c = 0; c < 9; ++c) dirty_in.d_out(row, h, c) = poison;
        }
      }
      for (int key = 0; key < 300; ++key) {
        if (key % 7 != 0 && !(key >= 50 && key < 60)) continue;
        dirty.keys[0].set(key, 0, key % 6, poison);
        dirty.values[0].set(key, 0, key % 9, poison);
      }
      const Grads a = gradients_on_every_form(clean, clean_in);
      const Grads b = gradients_on_every_form(dirty, dirty_in, false);
      EXPECT_TRUE(same_bits(a, b)) << poison << sinks;
      EXPECT_TRUE(all_finite(b));
    }
  }
}

TEST(BackwardCases, NaNReachesThoseWhoSeeIt) {
  TestProblem made(shape_of(30, 150));
  made.problem.mask.causal = true;
  made.q(20, 1, 2) = kNaN;  // its row stands at 140: it sees keys 0..140
  on_every_form([&](const std::string& form) {
    SCOPED_TRACE(form);
    const Grads grads = run_backward(made, incoming(made.problem, 4));
    EXPECT_TRUE(std::isnan(grads.d_q(20, 1, 0)));
    EXPECT_TRUE(std::isnan(grads.d_k[0](140, 0, 0)) && std::isnan(grads.d_v[0](0, 0, 0)));
    EXPECT_TRUE(std::isfinite(grads.d_q(20, 0, 0)) && std::isfinite(grads.d_q(19, 1, 0)));
    EXPECT_TRUE(std::isfinite(grads.d_k[0](141, 0, 0)) && std::isfinite(grads.d_v[0](149, 0, 3)));
  });
}

// Scores of 1000 * 1000 * D: weights from a log-sum-exp in float32 would be off by whole factors.
TEST(BackwardCases, InputsOfAThousand) {
  TestProblem made(shape_of(20, 260, 2, 1, 64, 64));
  std::fill_n(made.q.data(), made.q.size(), 1000.0f);
  for (int j = 0; j < 260; ++j) {
    for (int c = 0; c < 64; ++c) {
      made.keys[0].set(j, 0, c, 1000.0f);
      made.values[0].set(j, 0, c, 1000.0f);
    }
  }
  Incoming in = incoming(made.problem, 6);
  const Grads grads = gradients_on_every_form(made, in, false);
  EXPECT_TRUE(all_finite(grads));
  for (int j = 0; j < 260; ++j) {
    for (int c = 0; c < 64; ++c) {
      double sum = 0, size = 0;
      for (int lane = 0; lane < 40; ++lane) {
        sum += in.d_out(lane / 2, lane % 2, c) / 260.0;
        size += std::abs(in.d_out(lane / 2, lane % 2, c)) / 260.0;
      }
      // One rounding for each of 40 products and 40 sums, and two of the weight.
      ASSERT_NEAR(grads.d_v[0](j, 0, c), sum, size * 82 * 0x1p-24) << j;
    }
  }
}

TEST(BackwardCases, ScalesSoftcapsAndSinksOfEveryKind) {
  for (const float scale : {0.0f, -0.5f, 3.0f}) {
    for (const float softcap : {0.0f, 0.7f, 30.0f}) {
      TestProblem made(shape_of(13, 140, 6, 2, 9, 17));
      made.problem.scale = scale;
      made.problem.softcap = softcap;
      made.sinks({0.0f, 2.0f, -1.0f, -kInfinity, 30.0f, -30.0f});
      const Grads grads = gradients_on_every_form(made, incoming(made.problem, 7));
      EXPECT_TRUE(all_finite(grads));
      EXPECT_EQ(grads.d_sinks(3), 0);
      EXPECT_EQ(all_zero(seen(grads.d_q)[0]) && all_zero(seen(grads.d_k[0])[0]), scale == 0);
    }
  }
}

// A row that reads a single key: its weight is 1 whatever its score is, so its score has a gradient of exactly 0.
TEST(BackwardCases, ARowThatReadsOneKeyHasAScoreOfNoConsequence) {
  TestProblem made(shape_of(70, 70));
  made.problem.mask.causal = true;
  made.problem.mask.window_left = 1;
  Incoming in = incoming(made.problem, 8);
  std::fill_n(in.d_log_sum_exp.data(), in.d_log_sum_exp.size(), 0.0f);
  const Grads grads = gradients_on_every_form(made, in);
  for (int row = 0; row < 70; ++row) EXPECT_TRUE(all_zero(seen(grads.d_q)[row]));
  EXPECT_EQ(grads.d_v[0](5, 0, 3), in.d_out(5, 0, 3) + in.d_out(5, 1, 3));
}

// T5's kind: a table of T + S - 1 numbers per head, seen with strides -1 and 1, over sequences of several lengths.
TEST(BackwardCases, BiasTablesByPosition) {
  Shape shape = shape_of(30, 200, 4, 2);
  shape.queries = {30, 5};
  shape.lengths = {200, 33};
  shape.dtype = DType::bf16;  // a bias in float32 all the same
  for (const bool shared_heads : {false, true}) {
    TestProblem made(shape);
    Tensor<float, 3> table({1, shared_heads ? 1 : 4, 399});
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    for (float& x : std::span(table.data(), table.size())) x = normal(random);
    made.bias(std::move(table));
    made.problem.mask.bias_by_position = true;
    made.problem.mask.bias = {made.bias_numbers.data() + 199, {200, 4, 200}, {-1, shared_heads ? 0 : 399, 1}};
    gradients_on_every_form(made, incoming(made.problem, 9));
  }
}

TEST(BackwardCases, BiasesOfEveryBroadcast) {
  for (int axes = 0; axes < 8; ++axes) {
    Shape shape = shape_of(20, 600, 4, 2);
    shape.queries = {20, 7, 3};
    shape.lengths = {600, 1, 140};
    TestProblem made(shape);
    Tensor<float, 3> bias({axes & 1 ? 30 : 1, axes & 2 ? 4 : 1, axes & 4 ? 600 : 1});
    for (std::int64_t i = 0; i < bias.size(); ++i) bias.data()[i] = static_cast<float>(i % 5) / 5;
    made.bias(std::move(bias));
    View<const float, 3>& view = made.problem.mask.bias;
    view.shape = {30, 4, 600};
    for (int axis = 0; axis < 3; ++axis)
      if (!(axes >> axis & 1)) view.stride[axis] = 0;
    SCOPED_TRACE(axes);
    gradients_on_every_form(made, incoming(made.problem, 10));
  }
}

// Gradients of a sequence have the same bits alone and among others, and in any strides; what is not asked for is not
// touched.
TEST(BackwardCases, OtherSequencesStridesAndWishesChangeNothing) {
  Shape shape = shape_of(50, 700, 4, 2);
  TestProblem alone(shape);
  const Incoming in = incoming(alone.problem, 11);
  const Grads expected = run_backward(alone, in);

  shape.queries = {50, 4};
  shape.lengths = {700, 90};
  TestProblem both(shape);
  std::copy_n(alone.q.data(), alone.q.size(), both.q.data());
  both.sequences[0].k = alone.keys[0].rows;
  both.sequences[0].v = alone.values[0].rows;
  Incoming both_in = incoming(both.problem, 12);
  std::copy_n(in.d_out.data(), in.d_out.size(), both_in.d_out.data());
  std::copy_n(in.d_log_sum_exp.data(), in.d_log_sum_exp.size(), both_in.d_log_sum_exp.data());
  const Grads among = run_backward(both, both_in);
  EXPECT_TRUE(same_bits(expected.d_k[0], among.d_k[0]) && same_bits(expected.d_v[0], among.d_v[0]));
  EXPECT_EQ(std::memcmp(expected.d_q.data(), among.d_q.data(), expected.d_q.size() * sizeof(float)), 0);

  const Result result = run(alone.problem);
  std::vector<float> memory(50 * 4 * 13, 5.0f);
  const View<float, 3> d_q(memory.data() + 12, {50, 4, 6}, {52, 13, -2});  // every other number, backwards
  backward(alone.problem, result.out.view(), result.softmax.view(), in.d_out.view(), {d_q, {}, {}, {}, {}},
           in.d_log_sum_exp.view());
  for (int r = 0; r < 50; ++r)
    for (int h = 0; h < 4; ++h)
      for (int c = 0; c < 6; ++c) ASSERT_EQ(d_q(r, h, c), expected.d_q(r, h, c));
  for (int lane = 0; lane < 200; ++lane) ASSERT_EQ(memory[lane * 13 + 1], 5.0f);

  Tensor<float, 3> d_k({700, 2, 6});
  const View<float, 3> d_keys = d_k.view();
  Gradients only_keys;
  only_keys.d_k = {&d_keys, 1};
  backward(alone.problem, result.out.view(), result.softmax.view(), in.d_out.view(), only_keys,
           in.d_log_sum_exp.view());
  EXPECT_TRUE(same_bits(d_k, expected.d_k[0]));
}

TEST(BackwardCases, NothingToDo) {
  for (const auto& [queries, length] : {std::array{0, 5}, std::array{3, 0}, std::array{0, 0}}) {
    TestProblem made(shape_of(queries, length));
    made.sinks({0.0f, 1.0f});
    const Grads grads = gradients_on_every_form(made, incoming(made.problem, 1));
    EXPECT_TRUE(all_finite(grads));
    for (int key = 0; key < length; ++key) EXPECT_TRUE(all_zero(seen(grads.d_k[0])[key]));
    for (int row = 0; row < queries; ++row) EXPECT_TRUE(all_zero(seen(grads.d_q)[row]));
  }
}

TEST(BackwardCases, RefusesWhatDoesNotFit) {
  TestProblem made(shape_of(4, 9));
  const Result result = run(made.problem);
  const Incoming in = incoming(made.problem, 1);
  const auto refused = [&](const Gradients& gradients, const std::string& words) {
    regard::testing::expect_error(ErrorCode::bad_input, {words}, [&] {
      backward(made.problem, result.out.view(), result.softmax.view(), in.d_out.view(), gradients);
    });
  };
  Tensor<float, 3> wrong({4, 2, 5}), right({4, 2, 6});
  const View<float, 3> views[2] = {wrong.view(), wrong.view()};
  Tensor<float, 1> sinks({2});
  refused({wrong.view(), {}, {}, {}, {}}, "axis 2 of d_q has 5, the problem 6");
  refused({right.view(), views, {}, {}, {}}, "d_k has 2 sequences, the problem 1");
  refused({{}, {views, 1}, {}, {}, {}}, "d_k of sequence 0");
  refused({{}, {}, {}, right.view(), {}}, "the problem has no bias");
  refused({{}, {}, {}, {}, sinks.view()}, "the problem has no sinks");
}

}  // namespace
}  // namespace regard::test
