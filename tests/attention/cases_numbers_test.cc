// Faults that other attention kernels had with numbers, each as a test on the reference and on every form: E
// log-sum-exp and merging, F numerics, K caches, L determinism.

#include <gtest/gtest.h>

#include "attention/forms.h"

namespace regard::test {
namespace {

// ---- E. Log-sum-exp and the merging of blocks -----------------------------------------------------------------------

TEST(Cases, E34_NoKeysGiveMinusInfinity) {
  Shape shape = shape_of(3, 0);
  const TestProblem made(shape);
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    for (std::int64_t r = 0; r < 3; ++r) expect_saw_nothing(outcome, r, 1);
  });
}

TEST(Cases, E35_MaskedRowsGiveMinusInfinity) {
  TestProblem made(shape_of(5, 30));
  made.problem.mask.causal = true;
  made.query_rows[2].position = -1;
  made.query_rows[4].position = -1000;
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    expect_saw_nothing(outcome, 2, 0);
    expect_saw_nothing(outcome, 4, 1);
    for (std::int64_t r : {0, 1, 3}) EXPECT_TRUE(std::isfinite(outcome.log_sum_exp(r, 0)));
  });
}

// A row whose keys are split over threads, with results that are written apart.
TEST(Cases, E37_SplitKeysWriteWhereTheyShould) {
  const TestProblem made(shape_of(2, 1500, 6, 3));
  const Result expected = run(made.problem);
  on_every_form([&](const std::string& form) {
    std::vector<float> out(7 * 20 * 40, 55), log_sum_exp(40 * 20, 55);
    forward(made.problem, View<float, 3>(out.data(), {2, 6, 9}, {2800, 400, 20}), {},
            View<float, 2>(log_sum_exp.data(), {2, 6}, {400, 20}));
    std::size_t written = 0;
    for (std::int64_t r = 0; r < 2; ++r) {
      for (std::int64_t h = 0; h < 6; ++h) {
        EXPECT_EQ(log_sum_exp[r * 400 + h * 20], expected.log_sum_exp(r, h)) << form;
        for (std::int64_t e = 0; e < 9; ++e)
          written += out[r * 2800 + h * 400 + e * 20] == expected.out(r, h, e) ? 1 : 0;
      }
    }
    EXPECT_EQ(written, 2u * 6 * 9) << form;
    EXPECT_EQ(std::count(out.begin(), out.end(), 55.0f), std::ssize(out) - 2 * 6 * 9) << form;
    EXPECT_EQ(std::count(log_sum_exp.begin(), log_sum_exp.end(), 55.0f), std::ssize(log_sum_exp) - 2 * 6) << form;
  });
}

TEST(Cases, E38_SplitKeysInPages) {
  for (const std::int64_t page_rows : {1, 16, 100}) {
    for (const std::int64_t length : {129, 640, 1025}) {
      Shape shape = shape_of(1, length, 4, 2);
      shape.layout = Layout::paged;
      shape.page_rows = page_rows;
      const TestProblem made(shape);
      on_every_outcome(made.problem, [](const Outcome& outcome) { EXPECT_TRUE(all_finite(outcome)); });
      expect_law_1(made.problem);
    }
  }
}

TEST(Cases, E39_HugeScoresNeedNoGuess) {
  for (const float size : {1e2f, 1e4f, 1e15f, 1e30f}) {
    Shape shape = shape_of(3, 300);
    shape.channels = 1;
    TestProblem made(shape);
    made.problem.scale = 1.0f;
    for (float& q : std::span(made.q.data(), made.q.size())) q = size;
    for (std::int64_t j = 0; j < 300; ++j) made.keys[0].set(j, 0, 0, static_cast<float>(j == 177 ? 40 : j % 17 - 8));
    on_every_outcome(made.problem, [](const Outcome& outcome) {
      EXPECT_TRUE(all_finite(outcome));
      EXPECT_EQ(keys_read(outcome, 1, 1), keys_between(177, 178));
      EXPECT_EQ(outcome.weight(1, 1, 177), 1);
    });
    expect_law_1(made.problem);
  }
}

// ---- F. Numerics ----------------------------------------------------------------------------------------------------

TEST(Cases, F40_AnyFiniteScale) {
  for (const float scale : {-1.0f, -0.01f, 0.0f, -0.0f, 3.0f, 1e-30f}) {
    for (const std::int64_t length : {1, 20, 260}) {
      TestProblem made(shape_of(3, length));
      made.problem.scale = scale;
      expect_law_1(made.problem);
    }
  }
}

TEST(Cases, F41_AScaleOfZeroIsTheMeanOfTheVisibleValues) {
  TestProblem made(shape_of(5, 150));
  made.problem.scale = 0.0f;
  made.problem.mask.causal = true;
  on_every_outcome(made.problem, [&](const Outcome& outcome) {
    for (std::int64_t r = 0; r < 5; ++r) {
      const std::int64_t keys = 146 + r;
      for (std::int64_t j = 0; j < keys; ++j) EXPECT_EQ(outcome.weight(r, 0, j), 1.0f / static_cast<float>(keys));
      for (std::int64_t e = 0; e < 9; ++e) {
        double mean = 0, size = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          mean += made.values[0].numbers[j * 9 + e];
          size += std::abs(made.values[0].numbers[j * 9 + e]);
        }
        // A chain of `keys` additions, one division.
        const double bound = (static_cast<double>(keys) + 2) * 0x1p-24 * size / static_cast<double>(keys);
        EXPECT_NEAR(outcome.out(r, 0, e), mean / static_cast<double>(keys), bound);
      }
    }
  });
  expect_law_1(made.problem);
}

TEST(Cases, F43_EverythingIs1000) {
  TestProblem made(shape_of(4, 300));
  for (float& q : std::span(made.q.data(), made.q.size())) q = 1000;
  for (std::int64_t j = 0; j < 300; ++j) {
    for (std::int64_t c = 0; c < 6; ++c) made.keys[0].set(j, 0, c, 1000);
    for (std::int64_t c = 0; c < 9; ++c) made.values[0].set(j, 0, c, 1000);
  }
  on_every_outcome(made.problem, [](const Outcome& outcome) {
    EXPECT_TRUE(all_finite(outcome));
    for (std::int64_t j = 0; j < 300; ++j) EXPECT_EQ(outcome.weight(2, 1, j), 1.0f / 300);
    for (std::int64_t e = 0; e < 9; ++e) EXPECT_NEAR(outcome.out(2, 1, e), 1000, 1000 * 302 * 0x1p-24);
  });
}

TEST(Cases, F44_BiasesInFloat32) {
  TestProblem made(shape_of(7, 200));
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 8);
  Tensor<float, 3> bias({7, 2, 200});
  for (float& b : std::span(bias.data(), bias.size())) b = normal(random);
  made.bias(std::move(bias));
  expect_law_1(made.problem);
}

// Small weights are neither flushed early nor wrong: scores 0, -6, -12, ... -84.
TEST(Cases, F46_SmallWeightsAreRightToTheirLastPlaces) {
  constexpr std::int64_t kKeys = 15;
  Shape shape = shape_of(2, kKeys);
  shape.channels = 1;
  TestProblem made(shape);
  made.problem.scale = 1.0f;
  for (float& q : std::span(made.q.data(), made.q.size())) q = 1;
  for (std::int64_t j = 0; j < kKeys; ++j) made.keys[0].set(j, 0, 0, -6.0f * static_cast<float>(j));
  const ReferenceAttention truth = reference_attention(made.problem);
  on_every_outcome(made.problem, [&](const Outcome& outcome) {
    for (std::int64_t j = 0; j < kKeys; ++j) {
      // exp: 1 ulp; each of the sum's additions, the reciprocal and the product: half of one.
      const double bound = truth.weight(1, 1, j) * (0x1p-23 + (kKeys + 1) * 0x1p-24);
      EXPECT_NEAR(outcome.weight(1, 1, j), truth.weight(1, 1, j), bound) << "key " << j;
    }
  });
}

// The larger of two scores that differ in the last place never gets the smaller weight.
TEST(Cases, F47_NearTiesKeepTheirOrder) {
  for (float base : {-3.0f, -0.1f, 0.3f, 1.0f, 5.0f, 20.0f}) {
    constexpr std::int64_t kKeys = 200;
    Shape shape = shape_of(1, kKeys);
    shape.channels = 1;
    TestProblem made(shape);
    made.problem.scale = 1.0f;
    for (float& q : std::span(made.q.data(), made.q.size())) q = 1;
    for (std::int64_t j = 0; j < kKeys; ++j, base = std::nextafter(base, 100.0f)) made.keys[0].set(j, 0, 0, base);
    on_every_outcome(made.problem, [&](const Outcome& outcome) {
      for (std::int64_t j = 1; j < kKeys; ++j) EXPECT_GE(outcome.weight(0, 0, j), outcome.weight(0, 0, j - 1));
      EXPECT_GT(outcome.weight(0, 0, kKeys - 1), outcome.weight(0, 0, 0));
    });
  }
}

// Lengths and numbers of rows on both sides of every tile's and block's end.
TEST(Cases, F49_LengthsThatAreNoMultipleOfATile) {
  for (const std::int64_t length : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129, 255, 257}) {
    TestProblem made(shape_of(2, length));
    expect_law_1(made.problem);
  }
  for (const std::int64_t queries : {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 33, 48, 49, 97}) {
    TestProblem made(shape_of(queries, 19, 1));
    made.problem.mask.causal = true;
    const ReferenceAttention truth = reference_attention(made.problem);
    const Errors limit = allowed(made.problem, truth);
    on_every_form([&](const std::string& form) {
      const Result result = run(made.problem);
      const Errors errors = errors_of(result, read_pattern(made.problem, result), truth);
      EXPECT_LE(errors.out, limit.out) << form << ", " << queries;
      EXPECT_LE(errors.weight, limit.weight) << form << ", " << queries;
      EXPECT_LE(errors.log_sum_exp, limit.log_sum_exp) << form << ", " << queries;
    });
  }
}

TEST(Cases, F50_Float32BiasWithHalfPrecisionKeys) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Shape shape = shape_of(5, 150);
    shape.dtype = dtype;
    TestProblem made(shape);
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    Tensor<float, 3> bias({5, 2, 150});
    for (float& b : std::span(bias.data(), bias.size())) b = normal(random);
    made.bias(std::move(bias));
    expect_law_1(made.problem);
  }
}

// ---- K. Caches ------------------------------------------------------------------------------------------------------

// Token after token, each reads every one before it and itself, and gets what it would get in one go.
TEST(Cases, K85_AGrowingCacheHasNoHole) {
  TestProblem whole(shape_of(140, 140));
  whole.problem.mask.causal = true;
  const Result expected = run(whole.problem);
  for (const std::int64_t position : {0, 1, 2, 7, 126, 127, 128, 129, 139}) {
    const ChosenRows step(whole.problem, {position});
    Sequence sequence = whole.sequences[0];
    sequence.length = position + 1;
    Problem problem = step.problem;
    problem.sequences = std::span(&sequence, 1);
    on_every_outcome(problem, [&](const Outcome& outcome) {
      EXPECT_EQ(keys_read(outcome, 0, 1), keys_between(0, position + 1));
      if (outcome.form == "reference") return;
      EXPECT_EQ(std::memcmp(outcome.out.data(), &expected.out(position, 0, 0), 2 * 9 * sizeof(float)), 0);
    });
  }
}

// The whole range of the half-width formats: largest, smallest and subnormal numbers, in every place of a row.
TEST(Cases, K86_EveryHalfPrecisionNumberIsReadRight) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const Layout layout : {Layout::in_place, Layout::strided}) {
      Shape shape = shape_of(1, 1, 1);
      shape.dtype = dtype;
      shape.layout = layout;
      shape.channels = 1;
      shape.value_channels = 37;
      TestProblem made(shape);
      const float numbers[] = {65504, -65504, 6.1035156e-05f, 5.9604645e-08f, -6.0975552e-05f, 1, 0, 2.5f, 0.333f};
      for (std::int64_t e = 0; e < 37; ++e) made.values[0].set(0, 0, e, numbers[e % 9]);
      on_every_outcome(made.problem, [&](const Outcome& outcome) {
        for (std::int64_t e = 0; e < 37; ++e) EXPECT_EQ(outcome.out(0, 0, e), stored(made.values[0].rows, 0, 0, e));
      });
    }
  }
}

TEST(Cases, K87_KeysAndValuesHaveTypesOfTheirOwn) {
  for (const DType of_keys : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType of_values : {DType::f32, DType::f16, DType::bf16}) {
      Shape shape = shape_of(6, 140, 4, 2);
      shape.dtype = of_keys;
      TestProblem made(shape);
      shape.dtype = of_values;
      made.values[0] = StoredRows(std::vector<float>(made.values[0].numbers), 140, 2, 9, shape);
      made.sequences[0].v = made.values[0].rows;
      expect_law_1(made.problem);
    }
  }
}

TEST(Cases, K89_HalfPrecisionAtLength) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Shape shape = shape_of(1, 3000, 4, 2);
    shape.dtype = dtype;
    shape.channels = shape.value_channels = 16;
    const TestProblem made(shape);
    expect_law_1(made.problem);
  }
}

// ---- L. Determinism -------------------------------------------------------------------------------------------------

TEST(Cases, L91_AgainAndAgain) {
  const TestProblem prefill(shape_of(50, 700, 4, 2)), decode(shape_of(1, 3000, 4, 2));
  for (const TestProblem* made : {&prefill, &decode}) {
    const Result expected = run(made->problem);
    const regard::testing::Restore restore;
    set_thread_count(3);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(same_bits(expected, run(made->problem)));
  }
}

}  // namespace
}  // namespace regard::test
