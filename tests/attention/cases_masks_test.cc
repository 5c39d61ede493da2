// Faults that other attention kernels had in their masks, each as a test on the reference and on every form. The names
// begin with the number of the kind: A fully masked rows, C causal alignment, D windows, sinks and softcap, G groups of
// heads, J bias.

#include <gtest/gtest.h>

#include "attention/forms.h"

namespace regard::test {
namespace {

Shape shape_of(std::int64_t queries, std::int64_t length, std::int64_t heads = 2, std::int64_t kv_heads = 1) {
  Shape shape;
  shape.queries = {queries};
  shape.lengths = {length};
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.channels = 6;
  shape.value_channels = 5;
  return shape;
}

// body(outcome) for the reference and every form.
template <class Body>
void on_every_outcome(const Problem& problem, Body body) {
  for (const Outcome& outcome : outcomes_of(problem)) {
    SCOPED_TRACE(outcome.form);
    body(outcome);
  }
}

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

// ---- D. Windows, softcap, sinks -------------------------------------------------------------------------------------

TEST(Cases, D26_WindowsCountTheRowItself) {
  for (const std::int64_t left : {1, 2, 200}) {
    for (const std::int64_t right : {-1, 0, 2}) {
      TestProblem made(shape_of(7, 7));
      made.problem.mask.window_left = left;
      made.problem.mask.window_right = right;
      on_every_outcome(made.problem, [&](const Outcome& outcome) {
        for (std::int64_t i = 0; i < 7; ++i) {
          const std::int64_t begin = std::max<std::int64_t>(0, i - left + 1);
          const std::int64_t end = right < 0 ? 7 : std::min<std::int64_t>(7, i + right + 1);
          EXPECT_EQ(keys_read(outcome, i, 0), keys_between(begin, end)) << "row " << i;
        }
      });
    }
  }
}

TEST(Cases, D27_CausalWindowIsMinOfPositionAndW) {
  for (const std::int64_t window : {1, 3, 127, 128, 129, 1000}) {
    TestProblem made(shape_of(7, 260));
    made.problem.mask.causal = true;
    made.problem.mask.window_left = window;
    const std::int64_t positions[] = {0, 1, 126, 127, 128, 200, 259};
    for (std::int64_t r = 0; r < 7; ++r) made.query_rows[r].position = positions[r];
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t r = 0; r < 7; ++r) {
        const std::int64_t i = positions[r];
        EXPECT_EQ(keys_read(outcome, r, 1), keys_between(i + 1 - std::min(i + 1, window), i + 1)) << "position " << i;
      }
    });
  }
}

TEST(Cases, D28_DecodeKeepsAllKeysOfTheWindow) {
  TestProblem made(shape_of(1, 300));
  made.problem.mask.causal = true;
  made.problem.mask.window_left = 128;
  on_every_outcome(made.problem,
                   [](const Outcome& outcome) { EXPECT_EQ(keys_read(outcome, 0, 0), keys_between(172, 300)); });
}

// A ring that keeps the last W rows: keys of the past lie where later ones were written. The window keeps them unread.
TEST(Cases, D29_ARingOfRowsServesAWindow) {
  constexpr std::int64_t kWindow = 6, kLength = 40, kRow = 5;
  TestProblem whole(shape_of(kLength, kLength));
  whole.problem.mask.causal = true;
  whole.problem.mask.window_left = kWindow;
  const Result expected = run(whole.problem);
  Shape of_ring = shape_of(1, kLength);
  for (std::int64_t position = 0; position < kLength; ++position) {
    std::vector<float> k(kWindow * 6, std::nanf("")), v(kWindow * kRow, std::nanf(""));
    for (std::int64_t j = 0; j <= position; ++j) {
      std::copy_n(whole.keys[0].numbers.data() + j * 6, 6, k.data() + j % kWindow * 6);
      std::copy_n(whole.values[0].numbers.data() + j * kRow, kRow, v.data() + j % kWindow * kRow);
    }
    std::vector<const std::byte*> k_rows, v_rows;
    for (std::int64_t j = 0; j <= position; ++j) {
      k_rows.push_back(reinterpret_cast<const std::byte*>(k.data() + j % kWindow * 6));
      v_rows.push_back(reinterpret_cast<const std::byte*>(v.data() + j % kWindow * kRow));
    }
    const ChosenRows step(whole.problem, {position});
    Sequence sequence = whole.sequences[0];
    sequence.length = position + 1;
    sequence.k.pages = k_rows.data();
    sequence.v.pages = v_rows.data();
    sequence.k.page_rows = sequence.v.page_rows = 1;
    Problem problem = step.problem;
    problem.sequences = std::span(&sequence, 1);
    on_every_form([&](const std::string& form) {
      const Result result = run(problem);
      EXPECT_EQ(std::memcmp(result.out.data(), &expected.out(position, 0, 0), 2 * kRow * sizeof(float)), 0)
          << form << ", position " << position;
    });
  }
}

TEST(Cases, D31_SoftcapComesBeforeTheMask) {
  TestProblem made(shape_of(8, 140));
  made.problem.softcap = 2;
  made.problem.mask.causal = true;
  Tensor<float, 3> bias({8, 2, 140});
  for (std::int64_t r = 0; r < 8; ++r) bias(r, 0, 3) = -kInfinity, bias(r, 1, 130) = 5;
  made.bias(std::move(bias));
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r = 0; r < 8; ++r) {
      for (std::int64_t j = 133 + r; j < 140; ++j) EXPECT_EQ(outcome.weight(r, 0, j), 0);
      EXPECT_EQ(outcome.weight(r, 0, 3), 0);
      // The bias is not capped: its key outweighs any other by at least e^(5 - 4).
      for (std::int64_t j = 0; j < 130; ++j) EXPECT_LT(outcome.weight(r, 1, j), outcome.weight(r, 1, 130) / 2.7f);
    }
  });
  expect_law_1(made.problem);
}

TEST(Cases, D32_ASmallCapLeaksNothing) {
  TestProblem made(shape_of(6, 200));
  made.problem.softcap = 0.01f;
  made.problem.mask.causal = true;
  for (QueryRow& row : made.query_rows) row.position -= 60;
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r = 0; r < 6; ++r) EXPECT_EQ(keys_read(outcome, r, 0), keys_between(0, 135 + r));
  });
  expect_law_1(made.problem);
}

// However the keys are split, the sink counts once: weights and its share are 1 together.
TEST(Cases, D33_TheSinkCountsOnce) {
  for (const std::int64_t keys : {1, 2, 128, 129, 1000}) {
    TestProblem made(shape_of(3, keys));
    made.sinks({1.5f, -2.0f});
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t r = 0; r < 3; ++r) {
        for (std::int64_t h = 0; h < 2; ++h) {
          double sum = 0;
          for (std::int64_t j = 0; j < keys; ++j) sum += outcome.weight(r, h, j);
          const double share = std::exp(double{made.sink_scores[h]} - outcome.log_sum_exp(r, h));
          EXPECT_NEAR(sum + share, 1, 1e-5);
          EXPECT_GT(share, h == 0 ? 1e-4 : 0);
        }
      }
    });
    expect_law_1(made.problem);
  }
}

TEST(Cases, D33_ASinkWithoutKeys) {
  TestProblem made(shape_of(3, 140));
  made.sinks({0.75f, -kInfinity});
  made.visible(0, std::vector<std::uint8_t>(140, 0));
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int64_t e = 0; e < 5; ++e) EXPECT_EQ(outcome.out(r, 0, e), 0);
      EXPECT_EQ(outcome.log_sum_exp(r, 0), 0.75f);
      expect_saw_nothing(outcome, r, 1);
    }
  });
}

// ---- G. Groups of heads ---------------------------------------------------------------------------------------------

TEST(Cases, G52_QueryHeadReadsItsGroupsHead) {
  for (const std::int64_t kv_heads : {1, 2, 3, 4}) {
    for (const std::int64_t group : {1, 2, 3, 7}) {
      TestProblem made(shape_of(3, 20, kv_heads * group, kv_heads));
      for (std::int64_t j = 0; j < 20; ++j) {
        for (std::int64_t g = 0; g < kv_heads; ++g) {
          for (std::int64_t e = 0; e < 5; ++e) made.values[0].set(j, g, e, static_cast<float>(g + 1));
        }
      }
      on_every_outcome(made.problem, [&](const Outcome& outcome) {
        for (std::int64_t h = 0; h < kv_heads * group; ++h) {
          EXPECT_NEAR(outcome.out(1, h, 2), static_cast<float>(h / group + 1), 1e-5) << "head " << h;
        }
      });
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
  const double e = std::exp(1.0), sum = 1 + 2 + 0.5 + e;
  on_every_outcome(made.problem, [&](const Outcome& outcome) {
    EXPECT_NEAR(outcome.weight(1, 1, 0), 1 / sum, 1e-6);
    EXPECT_NEAR(outcome.weight(1, 1, 1), 2 / sum, 1e-6);
    EXPECT_NEAR(outcome.weight(1, 1, 2), 0.5 / sum, 1e-6);
    EXPECT_NEAR(outcome.weight(1, 1, 3), e / sum, 1e-6);
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
