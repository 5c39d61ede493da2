// Faults that other attention kernels had with numbers that are not finite, or nearly so, each as a test on the
// reference and on every form: B.

#include <gtest/gtest.h>

#include "attention/forms.h"

namespace regard::test {
namespace {

// Every form is NaN where the reference is, and only there.
void expect_nan_as_reference(const Problem& problem) {
  const std::vector<Outcome> outcomes = outcomes_of(problem);
  const auto compare = [](const auto& a, const auto& b, const char* name) {
    for (std::int64_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(std::isnan(a.data()[i]), std::isnan(b.data()[i])) << name << " at " << i;
    }
  };
  for (const Outcome& outcome : outcomes) {
    SCOPED_TRACE(outcome.form);
    compare(outcome.out, outcomes[0].out, "out");
    compare(outcome.weight, outcomes[0].weight, "weight");
    compare(outcome.log_sum_exp, outcomes[0].log_sum_exp, "log_sum_exp");
  }
}

bool row_is_nan(const Outcome& outcome, std::int64_t row, std::int64_t head) {
  for (std::int64_t e = 0; e < outcome.out.shape()[2]; ++e) {
    if (!std::isnan(outcome.out(row, head, e))) return false;
  }
  return std::isnan(outcome.log_sum_exp(row, head));
}

// A problem of two whose keys from..to are hidden in the way of this number.
enum class Way { visible, edges, bias, segment, causal, window, length };
void hide(TestProblem& made, Way way, std::int64_t begin, std::int64_t end) {
  const std::int64_t rows = made.problem.q.shape[0], heads = made.shape.heads, length = made.shape.lengths[0];
  std::vector<EdgeEdit> edges;
  Tensor<float, 3> bias({rows, heads, length});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) {
      edges.push_back({r, static_cast<std::int32_t>(h), begin, end});
      for (std::int64_t j = begin; j < end; ++j) bias(r, h, j) = -kInfinity;
    }
  }
  std::vector<std::uint8_t> visible(static_cast<std::size_t>(length), 1);
  std::fill(visible.begin() + begin, visible.begin() + end, 0);
  std::vector<std::int32_t> segment(static_cast<std::size_t>(length), 0);
  std::fill(segment.begin() + begin, segment.begin() + end, 3);
  if (way == Way::visible) made.visible(0, visible);
  if (way == Way::edges) made.edges(edges);
  if (way == Way::bias) made.bias(std::move(bias));
  if (way == Way::segment) made.segments(0, segment);
  if (way == Way::causal) made.problem.mask.causal = true;
  if (way == Way::window) made.problem.mask.window_left = length - end;
  if (way == Way::length) made.sequences[0].length = begin;
  for (QueryRow& row : made.query_rows) row.position = way == Way::causal ? begin - 1 : length - 1;
}

// 0 * NaN is the trap: hidden keys and values hold NaN and infinities, also where others of their block are visible.
TEST(Cases, B14_WhatIsMaskedNeverLeaks) {
  struct Hidden {
    Way way;
    std::int64_t begin, end;
  };
  std::vector<Hidden> all;
  for (const Way way : {Way::visible, Way::edges, Way::bias, Way::segment}) {
    for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {0, 1}, {5, 6}, {0, 128}, {60, 200}, {128, 256}, {255, 300}}) {
      all.push_back({way, begin, end});
    }
  }
  for (const std::int64_t begin : {1, 100, 128, 200}) {
    all.push_back({Way::causal, begin, 300});
    all.push_back({Way::length, begin, 300});
    all.push_back({Way::window, 0, begin});
  }
  for (const std::int64_t queries : {1, 3}) {
    for (const Hidden& hidden : all) {
      SCOPED_TRACE("way " + std::to_string(static_cast<int>(hidden.way)) + ", keys " + std::to_string(hidden.begin) +
                   " to " + std::to_string(hidden.end));
      Shape shape = shape_of(queries, 300);
      TestProblem clean(shape), dirty(shape);
      hide(clean, hidden.way, hidden.begin, hidden.end);
      hide(dirty, hidden.way, hidden.begin, hidden.end);
      const float poison[] = {kNaN, kInfinity, -kInfinity};
      for (std::int64_t j = hidden.begin; j < hidden.end; ++j) {
        for (std::int64_t c = 0; c < 6; ++c) dirty.keys[0].set(j, 0, c, poison[(j + c) % 3]);
        for (std::int64_t c = 0; c < 9; ++c) dirty.values[0].set(j, 0, c, poison[(j + c / 4) % 3]);
      }
      const Result expected = run(clean.problem);
      const Tensor<float, 3> weight = pattern(clean.problem, expected);
      on_every_form([&](const std::string& form) {
        SCOPED_TRACE(form);
        const Result result = run(dirty.problem);
        EXPECT_TRUE(same_bits(result, expected));
        EXPECT_TRUE(same_bits(read_pattern(dirty.problem, result), weight));
      });
      const ReferenceAttention a = reference_attention(clean.problem), b = reference_attention(dirty.problem);
      EXPECT_TRUE(same_bits(a.out, b.out));
    }
  }
}

// Many lanes in one vector, each with its own boundary: what one sees, its neighbour must not.
TEST(Cases, B14_NeighbouringLanesDoNotLeak) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Shape shape = shape_of(40, 40);
    shape.dtype = dtype;
    TestProblem made(shape), clean(shape);
    made.problem.mask.causal = clean.problem.mask.causal = true;
    made.values[0].set(20, 0, 3, kNaN);
    made.values[0].set(30, 0, 4, kInfinity);
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t r = 0; r < 40; ++r) {
        for (std::int64_t e = 0; e < 9; ++e) {
          const float out = outcome.out(r, 1, e);
          EXPECT_EQ(std::isnan(out), e == 3 && r >= 20) << r << ' ' << e;
          EXPECT_EQ(out == kInfinity, e == 4 && r >= 30) << r << ' ' << e;
        }
      }
    });
    const Result expected = run(clean.problem);
    on_every_form([&](const std::string& form) {
      const Result result = run(made.problem);
      const auto bytes = sizeof(float) * static_cast<std::size_t>(20 * 2 * 9);
      EXPECT_EQ(std::memcmp(result.out.data(), expected.out.data(), bytes), 0) << form;
      EXPECT_TRUE(same_bits(result.softmax, expected.softmax)) << form;
    });
  }
}

TEST(Cases, B16_NaNInAQueryReachesItsRowOnly) {
  TestProblem made(shape_of(12, 140)), clean(shape_of(12, 140));
  made.q(5, 1, 2) = kNaN;
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r = 0; r < 12; ++r) {
      for (std::int64_t h = 0; h < 2; ++h) EXPECT_EQ(row_is_nan(outcome, r, h), r == 5 && h == 1) << r << ' ' << h;
    }
  });
  expect_nan_as_reference(made.problem);
  const Result expected = run(clean.problem);
  on_every_form([&](const std::string& form) {
    const Result result = run(made.problem);
    for (std::int64_t r = 0; r < 12; ++r) {
      if (r == 5) continue;
      EXPECT_EQ(std::memcmp(&result.out(r, 0, 0), &expected.out(r, 0, 0), 2 * 9 * sizeof(float)), 0) << form;
    }
  });
}

TEST(Cases, B16_NaNInAVisibleKeyReachesTheRowsThatSeeIt) {
  for (const std::int64_t key : {0, 7, 129}) {
    TestProblem made(shape_of(12, 140));
    made.problem.mask.causal = true;
    for (QueryRow& row : made.query_rows) row.position -= 4;  // positions 124 to 135
    made.keys[0].set(key, 0, 0, kNaN);
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t r = 0; r < 12; ++r) EXPECT_EQ(row_is_nan(outcome, r, 0), 124 + r >= key) << r;
    });
    expect_nan_as_reference(made.problem);
  }
}

TEST(Cases, B16_ScoresOfPlusInfinityAreNaNAndOfMinusInfinityAreMasked) {
  for (const float infinity : {kInfinity, -kInfinity}) {
    TestProblem made(shape_of(6, 133));
    for (float& q : std::span(made.q.data(), made.q.size())) q = std::abs(q) + 0.1f;
    made.keys[0].set(130, 0, 0, infinity);
    if (infinity < 0) {
      for (std::int64_t e = 0; e < 9; ++e) made.values[0].set(130, 0, e, kNaN);
    }
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t r = 0; r < 6; ++r) EXPECT_EQ(row_is_nan(outcome, r, 1), infinity > 0);
      if (infinity > 0) return;
      EXPECT_EQ(outcome.weight(3, 0, 130), 0);
    });
    expect_nan_as_reference(made.problem);
  }
}

TEST(Cases, B17_LargeNegativeBiasesStayFinite) {
  for (const float low : {-1e4f, -1e9f, -1e30f, std::numeric_limits<float>::lowest()}) {
    TestProblem made(shape_of(4, 200));
    Tensor<float, 3> bias({4, 2, 200});
    for (std::int64_t r = 0; r < 4; ++r) {
      for (std::int64_t j = 0; j < 200; ++j) bias(r, 0, j) = j < 150 ? low : 0, bias(r, 1, j) = low;
    }
    made.bias(std::move(bias));
    const Errors limit = allowed(made.problem, reference_attention(made.problem));
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      EXPECT_TRUE(all_finite(outcome));
      for (std::int64_t r = 0; r < 4; ++r) {
        EXPECT_EQ(keys_read(outcome, r, 0), keys_between(150, 200));
        EXPECT_NEAR(books_of(made.problem, outcome, r, 1), 1, limit.books);
      }
    });
  }
}

}  // namespace
}  // namespace regard::test
