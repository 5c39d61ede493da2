// Dropout: the same edges in forward and backward, on every form; none at 0, all at 1.

#include <gtest/gtest.h>

#include "attention/backward_support.h"
#include "attention/forms.h"
#include "support/errors.h"

namespace regard::test {
namespace {

// Several panels and blocks of keys, rows alone (decode), gradients; with a mask, a softcap and sinks.
TEST(Dropout, EveryFormAgreesWithTheReference) {
  for (const float probability : {0.1f, 0.5f, 1.0f}) {
    TestProblem made(shape_of(40, 300, 4, 2, 6, 9));
    made.problem.mask.causal = true;
    made.problem.softcap = 5;
    made.sinks({0.0f, 1.0f, -1.0f, 0.5f});
    made.problem.dropout = {probability, 77};
    expect_law_1(made.problem);
    gradients_on_every_form(made, incoming(made.problem, 5));
  }
}

TEST(Dropout, OfProbabilityZeroIsNone) {
  TestProblem made(shape_of(40, 300));
  const Incoming in = incoming(made.problem, 5);
  const Result without = run(made.problem);
  const Grads grads_without = run_backward(made, in);
  made.problem.dropout = {0.0f, 1234};
  EXPECT_TRUE(same_bits(without, run(made.problem)));
  EXPECT_TRUE(same_bits(grads_without, run_backward(made, in)));
}

TEST(Dropout, OfProbabilityOneLeavesNothing) {
  TestProblem made(shape_of(12, 40));
  for (int c = 0; c < 9; ++c) made.values[0].set(7, 0, c, std::numeric_limits<float>::quiet_NaN());
  made.problem.dropout = {1.0f, 3};
  Incoming in = incoming(made.problem, 5);
  std::fill_n(in.d_log_sum_exp.data(), in.d_log_sum_exp.size(), 0.0f);
  on_every_form([&](const std::string& form) {
    SCOPED_TRACE(form);
    const Result result = run(made.problem);
    const Grads grads = run_backward(made, in);
    const auto zero = [](const Tensor<float, 3>& t) {
      return std::count(t.data(), t.data() + t.size(), 0.0f) == t.size();
    };
    EXPECT_TRUE(zero(result.out));
    EXPECT_TRUE(zero(grads.d_q) && zero(grads.d_k[0]) && zero(grads.d_v[0]));
  });
}

// The log-sum-exp and the weights that readers get are those without dropout.
TEST(Dropout, IsNotSeenByTheSoftmax) {
  TestProblem made(shape_of(12, 140));
  const Result without = run(made.problem);
  const Tensor<float, 3> weights_without = pattern(made.problem, without);
  made.problem.dropout = {0.3f, 3};
  const Result with = run(made.problem);
  EXPECT_TRUE(same_bits(without.softmax, with.softmax) && same_bits(without.log_sum_exp, with.log_sum_exp));
  EXPECT_TRUE(same_bits(weights_without, pattern(made.problem, with)));
  EXPECT_FALSE(same_bits(without.out, with.out));
}

// Uniform weights and values of 1: an output is the share of edges kept over 1 - probability.
TEST(Dropout, DropsItsShare) {
  for (const float probability : {0.1f, 0.5f, 0.9f}) {
    TestProblem made(shape_of(500, 500, 2, 1, 4, 1));
    made.problem.scale = 0.0f;
    for (int j = 0; j < 500; ++j) made.values[0].set(j, 0, 0, 1.0f);
    double mean[2] = {};
    std::vector<float> seen[2];
    for (int seed : {0, 1}) {
      made.problem.dropout = {probability, static_cast<std::uint64_t>(seed)};
      const Result result = run(made.problem);
      for (int i = 0; i < 1000; ++i) mean[seed] += result.out.data()[i] / 1000;
      seen[seed].assign(result.out.data(), result.out.data() + 1000);
      // 500,000 independent edges: five standard deviations of their mean.
      EXPECT_NEAR(mean[seed], 1.0, 5 * std::sqrt(probability / (1 - probability) / 500'000));
      // A row's 500 edges: the variance of 1,000 rows' outputs, within a third.
      double variance = 0;
      for (float out : seen[seed]) variance += std::pow(out - mean[seed], 2) / 1000;
      EXPECT_NEAR(variance * 500 / (probability / (1 - probability)), 1.0, 1.0 / 3);
    }
    EXPECT_NE(seen[0], seen[1]);
  }
}

TEST(Dropout, RefusesWhatIsNoProbability) {
  for (const float probability : {-0.1f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    TestProblem made(shape_of(2, 3));
    made.problem.dropout.probability = probability;
    regard::testing::expect_error(ErrorCode::bad_input, {"dropout"}, [&] { validate(made.problem); });
  }
}

}  // namespace
}  // namespace regard::test
