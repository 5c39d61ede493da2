// Faults that other attention kernels had in their masks, each as a test on the reference and on every form. The names
// begin with the number of the kind: A fully masked rows, C causal alignment.

#include <gtest/gtest.h>

#include "attention/forms.h"

namespace regard::test {
namespace {

// Rows `chosen` of two outcomes of the same form are the same bytes.
void expect_same_rows(const Problem& a, const Problem& b, const std::vector<std::int64_t>& chosen) {
  const std::vector<Outcome> of_a = outcomes_of(a), of_b = outcomes_of(b);
  for (std::size_t form = 1; form < of_a.size(); ++form) {
    SCOPED_TRACE(of_a[form].form);
    const auto [rows, heads, channels] = of_a[form].out.shape();
    for (const std::int64_t r : chosen) {
      const auto bytes = static_cast<std::size_t>(heads * channels) * sizeof(float);
      EXPECT_EQ(std::memcmp(&of_a[form].out(r, 0, 0), &of_b[form].out(r, 0, 0), bytes), 0) << "row " << r;
    }
  }
}

// ---- A. Fully masked rows and blocks -------------------------------------------------------------------------------

TEST(Cases, A1_PaddingRowsGiveZeroNotNaN) {
  Shape shape = shape_of(3, 7);
  shape.queries = {3, 3};
  shape.lengths = {7, 200};
  TestProblem made(shape);
  made.visible(0, std::vector<std::uint8_t>(7, 0));
  TestProblem neighbour(shape);  // the same without the padding
  on_every_outcome(made.problem, [&](const Outcome& outcome) {
    for (std::int64_t r : {0, 1, 2}) {
      for (std::int64_t h : {0, 1}) expect_saw_nothing(outcome, r, h);
    }
    EXPECT_TRUE(all_finite(outcome));
  });
  expect_same_rows(made.problem, neighbour.problem, {3, 4, 5});
}

TEST(Cases, A2_RowsOfNobodysSegmentGiveZero) {
  TestProblem made(shape_of(5, 150)), plain(shape_of(5, 150));
  made.segments(0, std::vector<std::int32_t>(150, 4));
  for (std::int64_t r : {0, 1, 2, 3, 4}) made.query_rows[r].segment = r % 2 == 0 ? 4 : 9;
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r : {1, 3}) {
      for (std::int64_t h : {0, 1}) expect_saw_nothing(outcome, r, h);
    }
    EXPECT_TRUE(all_finite(outcome));
  });
  expect_same_rows(made.problem, plain.problem, {0, 2, 4});
}

TEST(Cases, A4_AMaskedHeadIsTheSameWithAndWithoutWeights) {
  TestProblem made(shape_of(4, 140, 3));
  Tensor<float, 3> bias({4, 3, 140});
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t j = 0; j < 140; ++j) bias(r, 1, j) = -kInfinity;
  }
  made.bias(std::move(bias));
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r = 0; r < 4; ++r) {
      expect_saw_nothing(outcome, r, 1);
      EXPECT_EQ(keys_read(outcome, r, 0).size(), 140u);
      EXPECT_EQ(keys_read(outcome, r, 2).size(), 140u);
    }
  });
  const Result with = run(made.problem);
  Tensor<float, 3> without(with.out.shape());
  forward(made.problem, without.view());
  EXPECT_TRUE(same_bits(with.out, without));
}

TEST(Cases, A7_MasksThatOverflowTogetherMakeNoNaN) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  for (const std::int64_t keys : {5, 130, 300}) {
    TestProblem made(shape_of(3, keys));
    // Twice the lowest number on all keys but the first.
    Tensor<float, 3> bias({3, 2, keys});
    std::vector<EdgeEdit> edges;
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int32_t h = 0; h < 2; ++h) {
        for (std::int64_t j = 1; j < keys; ++j) bias(r, h, j) = kLowest;
        edges.push_back({r, h, 1, keys, kLowest});
      }
    }
    made.bias(std::move(bias));
    made.edges(edges);
    on_every_outcome(made.problem, [](const Outcome& outcome) {
      EXPECT_TRUE(all_finite(outcome));
      for (std::int64_t r = 0; r < 3; ++r) {
        for (std::int64_t h = 0; h < 2; ++h) {
          EXPECT_EQ(keys_read(outcome, r, h), keys_between(0, 1));
          EXPECT_EQ(outcome.weight(r, h, 0), 1);
        }
      }
    });
    for (float& b : std::span(made.bias_numbers.data(), made.bias_numbers.size())) b = kLowest;
    on_every_outcome(made.problem, [](const Outcome& outcome) { EXPECT_TRUE(all_finite(outcome)); });
  }
}

TEST(Cases, A8_AllFalseMaskGivesZero) {
  for (const std::int64_t keys : {1, 127, 128, 300}) {
    TestProblem made(shape_of(1, keys));
    made.visible(0, std::vector<std::uint8_t>(static_cast<std::size_t>(keys), 0));
    on_every_outcome(made.problem, [](const Outcome& outcome) {
      expect_saw_nothing(outcome, 0, 0);
      expect_saw_nothing(outcome, 0, 1);
    });
  }
}

TEST(Cases, A9_MaskedRowsLeaveTheirNeighboursAlone) {
  TestProblem made(shape_of(9, 270)), plain(shape_of(9, 270));
  std::vector<EdgeEdit> edges;
  for (std::int64_t r : {0, 4, 5, 8}) {
    for (std::int32_t h : {0, 1}) edges.push_back({r, h, 0, 270});
  }
  made.edges(edges);
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r : {0, 4, 5, 8}) expect_saw_nothing(outcome, r, 1);
    EXPECT_TRUE(all_finite(outcome));
  });
  expect_same_rows(made.problem, plain.problem, {1, 2, 3, 6, 7});
}

TEST(Cases, A10_ABiasOfMinusInfinityOnAWholeRowGivesZero) {
  TestProblem made(shape_of(6, 200));
  Tensor<float, 3> bias({6, 1, 1});
  bias(2, 0, 0) = bias(5, 0, 0) = -kInfinity;
  made.bias(std::move(bias));
  made.problem.mask.bias = {made.bias_numbers.data(), {6, 2, 200}, {1, 0, 0}};
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    expect_saw_nothing(outcome, 2, 0);
    expect_saw_nothing(outcome, 5, 1);
    EXPECT_EQ(keys_read(outcome, 3, 0).size(), 200u);
    EXPECT_TRUE(all_finite(outcome));
  });
}

// Blocks in which nothing is visible lie before, between and behind others.
TEST(Cases, A11_MaskedBlocksAnywhere) {
  for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 128}, {0, 256}, {128, 256}, {128, 384}, {256, 384}, {384, 500}, {100, 400}, {0, 499}, {1, 500}}) {
    TestProblem made(shape_of(3, 500));
    std::vector<EdgeEdit> edges;
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int32_t h : {0, 1}) edges.push_back({r, h, begin, end});
    }
    made.edges(edges);
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      const std::vector<std::int64_t> keys = keys_read(outcome, 1, 1);
      EXPECT_EQ(std::ssize(keys), 500 - (end - begin));
      for (std::int64_t key : keys) EXPECT_TRUE(key < begin || key >= end);
      EXPECT_TRUE(all_finite(outcome));
    });
    expect_law_1(made.problem);
  }
}

TEST(Cases, A12_HalfPrecisionKeysWithPaddingOnTheLeft) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Shape shape = shape_of(12, 12);
    shape.dtype = dtype;
    TestProblem made(shape);
    made.problem.mask.causal = true;
    std::vector<std::uint8_t> visible(12, 1);
    std::fill_n(visible.begin(), 5, 0);
    made.visible(0, visible);
    on_every_outcome(made.problem, [](const Outcome& outcome) {
      for (std::int64_t r = 0; r < 5; ++r) expect_saw_nothing(outcome, r, 0);
      for (std::int64_t r = 5; r < 12; ++r) EXPECT_EQ(keys_read(outcome, r, 1), keys_between(5, r + 1));
      EXPECT_TRUE(all_finite(outcome));
    });
  }
}

// ---- C. Causal alignment, masks together ----------------------------------------------------------------------------

TEST(Cases, C18_BothAlignmentsAreOffered) {
  const std::vector<QueryRow> right = query_rows(2, 3, 5), left = query_rows(2, 3, 5, CausalAlignment::top_left);
  ASSERT_EQ(right.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(right[i].sequence, static_cast<std::int32_t>(i / 3));
    EXPECT_EQ(right[i].position, 2 + static_cast<std::int64_t>(i % 3));
    EXPECT_EQ(left[i].position, static_cast<std::int64_t>(i % 3));
  }
  TestProblem made(shape_of(3, 5));
  made.problem.mask.causal = true;
  made.query_rows = query_rows(1, 3, 5, CausalAlignment::top_left);
  made.problem.rows = made.query_rows;
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r = 0; r < 3; ++r) EXPECT_EQ(keys_read(outcome, r, 0), keys_between(0, r + 1));
  });
}

TEST(Cases, C19_BottomRightByDefault) {
  for (const auto& [t, s] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 9}, {2, 5}, {5, 5}, {7, 300}}) {
    TestProblem made(shape_of(t, s));
    made.problem.mask.causal = true;
    made.query_rows = query_rows(1, t, s);
    made.problem.rows = made.query_rows;
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t r = 0; r < t; ++r) EXPECT_EQ(keys_read(outcome, r, 1), keys_between(0, s - t + r + 1));
    });
  }
}

TEST(Cases, C20_MoreQueriesThanKeys_FirstRowsAreZero) {
  for (const auto& [t, s] : std::vector<std::pair<std::int64_t, std::int64_t>>{{5, 3}, {9, 1}, {31, 20}}) {
    TestProblem made(shape_of(t, s));
    made.problem.mask.causal = true;
    made.query_rows = query_rows(1, t, s);
    made.problem.rows = made.query_rows;
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t r = 0; r < t - s; ++r) expect_saw_nothing(outcome, r, 0);
      for (std::int64_t r = t - s; r < t; ++r) EXPECT_EQ(keys_read(outcome, r, 1), keys_between(0, r - (t - s) + 1));
    });
  }
}

TEST(Cases, C21_MoreQueriesThanKeys_TopLeft) {
  TestProblem made(shape_of(9, 4));
  made.problem.mask.causal = true;
  made.query_rows = query_rows(1, 9, 4, CausalAlignment::top_left);
  made.problem.rows = made.query_rows;
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r = 0; r < 9; ++r) {
      EXPECT_EQ(keys_read(outcome, r, 0), keys_between(0, std::min<std::int64_t>(r + 1, 4)));
    }
  });
}

TEST(Cases, C22_QueriesAndKeysOfDifferentLength) {
  for (const auto& [t, s] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 129}, {3, 128}, {17, 130}, {33, 7}, {20, 257}, {2, 1}}) {
    TestProblem made(shape_of(t, s, 4, 2));
    made.problem.mask.causal = true;
    expect_law_1(made.problem);
    made.problem.mask.causal = false;
    expect_law_1(made.problem);
  }
}

TEST(Cases, C23_CausalWithABiasThatMasksTheRest) {
  TestProblem made(shape_of(6, 20));
  made.problem.mask.causal = true;
  Tensor<float, 3> bias({6, 2, 20});
  for (std::int64_t r = 0; r < 6; ++r) {
    for (std::int64_t h = 0; h < 2; ++h) {
      // Row r sees keys up to 14 + r; the bias leaves those from 16 on, so that rows 0 and 1 have none.
      for (std::int64_t j = 0; j < 16; ++j) bias(r, h, j) = -kInfinity;
    }
  }
  made.bias(std::move(bias));
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    expect_saw_nothing(outcome, 0, 0);
    expect_saw_nothing(outcome, 1, 1);
    for (std::int64_t r = 2; r < 6; ++r) EXPECT_EQ(keys_read(outcome, r, 0), keys_between(16, 15 + r));
    EXPECT_TRUE(all_finite(outcome));
  });
}

}  // namespace
}  // namespace regard::test
