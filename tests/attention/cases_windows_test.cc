// Faults that other attention kernels had with windows, softcap and sinks, each as a test on the reference and on every
// form: D.

#include <gtest/gtest.h>

#include "attention/forms.h"

namespace regard::test {
namespace {

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
  constexpr std::int64_t kWindow = 6, kLength = 40, kRow = 9;
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
    const ReferenceAttention truth = reference_attention(made.problem);
    const Errors limit = allowed(made.problem, truth);
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t r = 0; r < 3; ++r) {
        for (std::int64_t h = 0; h < 2; ++h) {
          EXPECT_NEAR(books_of(made.problem, outcome, r, h), 1, limit.books);
          EXPECT_GT(truth.sink(r, h), 4 * limit.books);  // so that a sink left out, or counted twice, is seen
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
      for (std::int64_t e = 0; e < 9; ++e) EXPECT_EQ(outcome.out(r, 0, e), 0);
      EXPECT_EQ(outcome.log_sum_exp(r, 0), 0.75f);
      expect_saw_nothing(outcome, r, 1);
    }
  });
}

}  // namespace
}  // namespace regard::test
