// Faults that other attention kernels had with what is broadcast, each as a test on the reference and on every form: G
// key/value heads over groups, J biases over rows, heads and keys.

#include <gtest/gtest.h>

#include "attention/forms.h"

namespace regard::test {
namespace {

// ---- G. Groups of heads ---------------------------------------------------------------------------------------------

TEST(Cases, G52_QueryHeadReadsItsGroupsHead) {
  for (const std::int64_t kv_heads : {1, 2, 3, 4}) {
    for (const std::int64_t group : {1, 2, 3, 7}) {
      TestProblem made(shape_of(3, 20, kv_heads * group, kv_heads));
      for (std::int64_t j = 0; j < 20; ++j) {
        for (std::int64_t g = 0; g < kv_heads; ++g) {
          for (std::int64_t e = 0; e < 9; ++e) made.values[0].set(j, g, e, static_cast<float>(g + 1));
        }
      }
      on_every_outcome(made.problem, [&](const Outcome& outcome) {
        for (std::int64_t h = 0; h < kv_heads * group; ++h) {
          EXPECT_EQ(std::lround(outcome.out(1, h, 2)), h / group + 1) << "head " << h;
        }
      });
      expect_law_1(made.problem);
    }
  }
}

TEST(Cases, G54_GroupsWithAMaskPerHead) {
  TestProblem made(shape_of(5, 135, 6, 2));
  Tensor<float, 3> bias({1, 6, 135});
  for (std::int64_t h = 0; h < 6; ++h) {
    for (std::int64_t j = 0; j < 135; ++j) bias(0, h, j) = j % 6 == h ? 0 : -kInfinity;
  }
  made.bias(std::move(bias));
  made.problem.mask.bias.shape[0] = 5;
  made.problem.mask.bias.stride[0] = 0;
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t h = 0; h < 6; ++h) {
      for (std::int64_t key : keys_read(outcome, 4, h)) EXPECT_EQ(key % 6, h);
      EXPECT_GE(keys_read(outcome, 4, h).size(), 22u);
    }
  });
  expect_law_1(made.problem);
}

TEST(Cases, G55_GroupsInABatch) {
  Shape shape = shape_of(1, 1, 8, 2);
  shape.queries = {1, 4, 1, 2, 1, 1};
  shape.lengths = {10, 4, 130, 2, 1, 64};
  const TestProblem made(shape);
  expect_law_1(made.problem);
}

// ---- J. Bias: broadcasting, values, polarity ------------------------------------------------------------------------

TEST(Cases, J75_EveryBroadcastShapeOfABias) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const std::int64_t queries : {1, 5}) {
    for (unsigned which = 0; which < 8; ++which) {
      SCOPED_TRACE(which);
      const std::array<std::int64_t, 3> full = {queries, 3, 150};
      std::array<std::int64_t, 3> small = full;
      for (unsigned axis = 0; axis < 3; ++axis) small[axis] = (which >> axis & 1) != 0 ? full[axis] : 1;
      Tensor<float, 3> numbers(small), dense(full);
      for (float& b : std::span(numbers.data(), numbers.size())) b = normal(random);
      View<const float, 3> view = std::as_const(numbers).view();
      for (unsigned axis = 0; axis < 3; ++axis) {
        if (small[axis] != full[axis]) view.stride[axis] = 0;
      }
      view.shape = full;
      for (std::int64_t r = 0; r < queries; ++r) {
        for (std::int64_t h = 0; h < 3; ++h) {
          for (std::int64_t j = 0; j < 150; ++j) dense(r, h, j) = view(r, h, j);
        }
      }
      TestProblem broadcast(shape_of(queries, 150, 3)), written_out(shape_of(queries, 150, 3));
      broadcast.problem.mask.bias = view;
      written_out.bias(std::move(dense));
      on_every_form([&](const std::string& form) {
        EXPECT_TRUE(same_bits(run(broadcast.problem), run(written_out.problem))) << form;
      });
      expect_law_1(broadcast.problem);
    }
  }
}

// Strides are honoured with shape 1 as well as with the full shape.
TEST(Cases, J77_ABroadcastAxisMayHaveAnyExtent) {
  TestProblem a(shape_of(4, 30)), b(shape_of(4, 30));
  std::vector<float> numbers(30);
  for (std::size_t j = 0; j < 30; ++j) numbers[j] = 0.1f * static_cast<float>(j);
  a.problem.mask.bias = {numbers.data(), {4, 2, 30}, {0, 0, 1}};
  b.problem.mask.bias = {numbers.data(), {1, 1, 30}, {0, 0, 1}};
  on_every_form([&](const std::string& form) { EXPECT_TRUE(same_bits(run(a.problem), run(b.problem))) << form; });
}

// A mask per sequence, heads and rows broadcast: each row of a decode batch has its own.
TEST(Cases, J79_AMaskPerSequence) {
  Shape shape = shape_of(1, 1, 4, 2);
  shape.queries = {1, 1, 1};
  shape.lengths = {40, 40, 40};
  TestProblem made(shape);
  Tensor<float, 3> bias({3, 1, 40});
  for (std::int64_t b = 0; b < 3; ++b) {
    for (std::int64_t j = 0; j < 40; ++j) bias(b, 0, j) = j % 3 == b ? 0.25f : -kInfinity;
  }
  made.bias(std::move(bias));
  made.problem.mask.bias.shape[1] = 4;
  made.problem.mask.bias.stride[1] = 0;
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t b = 0; b < 3; ++b) {
      for (std::int64_t h = 0; h < 4; ++h) {
        for (std::int64_t key : keys_read(outcome, b, h)) EXPECT_EQ(key % 3, b);
      }
    }
    EXPECT_EQ(keys_read(outcome, 0, 3).size(), 14u);
  });
}

// Numbers are added as they are; they are no truth values.
TEST(Cases, J81_ABiasIsANumber) {
  TestProblem made(shape_of(2, 4));
  for (float& q : std::span(made.q.data(), made.q.size())) q = 0;  // all scores are the bias
  std::vector<float> numbers = {0, std::log(2.0f), std::log(0.5f), 1};
  made.problem.mask.bias = {numbers.data(), {2, 2, 4}, {0, 0, 1}};
  double sum = 0;
  for (const float number : numbers) sum += std::exp(double{number});
  const Errors limit = allowed(made.problem, reference_attention(made.problem));
  on_every_outcome(made.problem, [&](const Outcome& outcome) {
    for (std::int64_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(outcome.weight(1, 1, j), std::exp(double{numbers[j]}) / sum, limit.weight) << "key " << j;
    }
  });
}

TEST(Cases, J82_ZeroHidesAKeyAndAnythingElseShowsIt) {
  TestProblem made(shape_of(3, 6));
  made.visible(0, {1, 0, 2, 0, 255, 128});
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    EXPECT_EQ(keys_read(outcome, 2, 0), (std::vector<std::int64_t>{0, 2, 4, 5}));
  });
}

TEST(Cases, J83_KeyPaddingDropsNoQueries) {
  for (const auto& [t, s] : std::vector<std::pair<std::int64_t, std::int64_t>>{{9, 5}, {3, 140}}) {
    TestProblem made(shape_of(t, s));
    std::vector<std::uint8_t> visible(static_cast<std::size_t>(s), 1);
    visible.back() = visible.front() = 0;
    made.visible(0, visible);
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t r = 0; r < t; ++r) EXPECT_EQ(keys_read(outcome, r, 0), keys_between(1, s - 1));
    });
    expect_law_1(made.problem);
  }
}

}  // namespace
}  // namespace regard::test
