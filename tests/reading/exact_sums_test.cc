#include "reading/exact_sums.h"

#include <gtest/gtest.h>

#include <numeric>

#include "reading/exact_sum.h"
#include "reading/tiles.h"
#include "tensor/error.h"

namespace regard {
namespace {

using testing::all_kinds;
using testing::Cut;
using testing::Scene;
using testing::within_law_1;

template <typename Reader>
std::vector<std::int64_t> sums(const Scene& scene, Reader&& reader, std::int64_t cells, const Cut& cut = {}) {
  const std::int64_t T = scene.options.rows, H = scene.options.heads;
  std::vector<std::int64_t> out(H * cells);
  regard::Reader* readers[] = {&reader};
  Placement placement;
  for (std::int64_t begin = 0; begin < T; begin += cut.chunk) {
    const auto aim = [&](const Problem& problem) {
      placement = Placement::all(problem);
      reader.aim(placement, {out.data(), {H, cells}});
    };
    scene.show(begin, std::min(begin + cut.chunk, T), aim, readers, cut.lanes, cut.seed);
  }
  return out;
}

std::vector<std::int64_t> column_sums(const Scene& scene, const Cut& cut = {}) {
  return sums(scene, ColumnSumReader(), scene.options.keys, cut);
}

// Distances -(keys - 1) .. largest position, or from 0 where rows cannot read ahead.
std::int64_t distances(const Scene& scene) {
  const std::int64_t most = std::max(scene.rows.back().position, scene.options.keys - 1);
  return scene.options.causal ? most + 1 : 2 * most + 1;
}
std::int64_t zero_at(const Scene& scene) { return scene.options.causal ? 0 : (distances(scene) - 1) / 2; }
std::vector<std::int64_t> diagonal_sums(const Scene& scene, const Cut& cut = {}) {
  return sums(scene, DiagonalReader(!scene.options.causal), distances(scene), cut);
}

template <typename T>
std::vector<T> as_numbers(const std::vector<std::int64_t>& sums) {
  std::vector<T> out;
  for (std::int64_t sum : sums) out.push_back(static_cast<T>(from_fixed(sum)));
  return out;
}

// Per head, P added up in cell(row, key): in float64 from the exact weights, in f32 from the f32 ones.
template <typename T, typename Weight, typename Cell>
std::vector<T> add_up(const Scene& scene, const std::vector<Weight>& weight, std::int64_t cells, Cell&& cell) {
  std::vector<T> out(scene.options.heads * cells);
  for (std::int64_t h = 0; h < scene.options.heads; ++h)
    for (std::int64_t i = 0; i < scene.options.rows; ++i)
      for (std::int64_t j = 0; j < scene.options.keys; ++j)
        if (const T w = static_cast<T>(weight[scene.at(i, h, j)]); w != 0) out[h * cells + cell(i, j)] += w;
  return out;
}

TEST(FixedPoint, KeepsWhatItSays) {
  EXPECT_EQ(from_fixed(to_fixed(1.0f)), 1);
  testing::Numbers numbers(1);
  for (int i = 0; i < 10000; ++i) {
    const float large = std::ldexp(1 + std::fabs(numbers.next()), -1 - static_cast<int>(numbers.below(17)));
    EXPECT_EQ(from_fixed(to_fixed(large)), large);  // from 2^-17 on: exact
    const float small = std::fabs(numbers.next(0x1p-17f));
    EXPECT_LE(std::fabs(from_fixed(to_fixed(small)) - small), 0x1p-41);
  }
}

TEST(FixedPoint, NotANumberStays) {
  std::int64_t sum = to_fixed(0.5f);
  for (int i = 0; i < 5; ++i) add_weight(sum, std::numeric_limits<float>::quiet_NaN());
  for (int i = 0; i < 1000; ++i) add_weight(sum, 1);
  EXPECT_TRUE(std::isnan(from_fixed(sum)));
  std::int64_t total = to_fixed(1);
  for (int thread = 0; thread < 4; ++thread) add_fixed(total, sum);
  EXPECT_TRUE(std::isnan(from_fixed(total)));
}

TEST(ColumnSumReader, AsCloseToTheTruthAsPlainF32) {
  for (const Scene& scene : all_kinds()) {
    const auto column = [](std::int64_t, std::int64_t j) { return j; };
    EXPECT_TRUE(within_law_1(as_numbers<float>(column_sums(scene)),
                             add_up<float>(scene, scene.weight, scene.options.keys, column),
                             add_up<double>(scene, scene.truth, scene.options.keys, column)));
  }
}

TEST(ColumnSumReader, IsTheExactSumOfTheF32Weights) {
  for (const Scene& scene : all_kinds()) {
    const auto exact =
        add_up<double>(scene, scene.weight, scene.options.keys, [](std::int64_t, std::int64_t j) { return j; });
    EXPECT_LE(testing::max_error(as_numbers<double>(column_sums(scene)), exact), scene.options.rows * 0x1p-41);
  }
}

TEST(ColumnSumReader, AddUpToRowsTimesHeads) {
  for (const Scene& scene : all_kinds()) {
    const std::vector<double> columns = as_numbers<double>(column_sums(scene));
    // The books: one per row and head that sees something, less what the sinks took.
    const double expected = std::accumulate(scene.truth.begin(), scene.truth.end(), 0.0);
    if (!scene.options.sinks && scene.options.hidden == 0) {
      EXPECT_NEAR(expected, scene.options.rows * scene.options.heads, 1e-9);
    }
    // As far off as the f32 weights are, and a fixed-point rounding each.
    double allowed = 0;
    for (std::size_t i = 0; i < scene.truth.size(); ++i)
      allowed += std::fabs(scene.weight[i] - scene.truth[i]) + 0x1p-41;
    EXPECT_NEAR(std::accumulate(columns.begin(), columns.end(), 0.0), expected, allowed);
  }
}

TEST(ColumnSumReader, AnEvenlyReadTextHasHarmonicColumns) {
  const std::int64_t T = 300;
  const Scene scene({.rows = T, .keys = T, .heads = 3, .kv_heads = 1, .flat = true}, 1);
  const std::vector<double> columns = as_numbers<double>(column_sums(scene));
  for (std::int64_t j = 0; j < T; ++j) {
    double expected = 0;  // row i reads each of its i + 1 keys with 1 / (i + 1)
    for (std::int64_t i = j; i < T; ++i) expected += 1.0 / (i + 1);
    EXPECT_NEAR(columns[j], expected, expected * 0x1p-24);
  }
}

TEST(DiagonalReader, AsCloseToTheTruthAsPlainF32) {
  for (const Scene& scene : all_kinds()) {
    const auto cell = [&](std::int64_t i, std::int64_t j) { return scene.rows[i].position - j + zero_at(scene); };
    EXPECT_TRUE(within_law_1(as_numbers<float>(diagonal_sums(scene)),
                             add_up<float>(scene, scene.weight, distances(scene), cell),
                             add_up<double>(scene, scene.truth, distances(scene), cell)));
  }
}

TEST(DiagonalReader, HoldsTheSameMassAsTheColumns) {
  for (const Scene& scene : all_kinds()) {
    const std::vector<std::int64_t> columns = column_sums(scene), diagonals = diagonal_sums(scene);
    const std::int64_t H = scene.options.heads, S = scene.options.keys, D = distances(scene);
    for (std::int64_t h = 0; h < H; ++h) {
      EXPECT_EQ(std::accumulate(columns.begin() + h * S, columns.begin() + (h + 1) * S, std::int64_t{0}),
                std::accumulate(diagonals.begin() + h * D, diagonals.begin() + (h + 1) * D, std::int64_t{0}));
    }
  }
}

TEST(DiagonalReader, RefusesRowsThatReadAheadUnlessToldTo) {
  const Scene scene({.rows = 4, .keys = 4, .causal = false}, 1);
  EXPECT_THROW(sums(scene, DiagonalReader(), 4), Error);
}

TEST(ExactSums, SameBitsForEveryTargetThreadCountChunkAndTile) {
  for (const Scene& scene : all_kinds()) {
    const auto both = [&](const Cut& cut) {
      std::vector<std::int64_t> all = column_sums(scene, cut);
      const std::vector<std::int64_t> diagonals = diagonal_sums(scene, cut);
      all.insert(all.end(), diagonals.begin(), diagonals.end());
      return all;
    };
    const std::vector<std::int64_t> expected = both({});
    testing::expect_same_bits_everywhere([&] { return both({.seed = 2}); });
    for (const Cut& cut : {Cut{1, 8, 1}, Cut{1, 200, 1}, Cut{7, 16, 3}, Cut{7, 48, 4}, Cut{1 << 20, 100, 5}})
      EXPECT_TRUE(testing::same_bits(expected, both(cut)));
  }
}

TEST(ExactSums, OnlyKeptRowsAndHeadsCount) {
  const Scene scene({.rows = 40, .keys = 40, .heads = 6, .kv_heads = 2}, 4);
  const std::vector<std::int64_t> heads = {1, 5};
  Placement placement;
  std::vector<std::int64_t> columns(2 * 40), diagonals(2 * 40);
  ColumnSumReader column;
  DiagonalReader diagonal;
  Reader* readers[] = {&column, &diagonal};
  scene.show(
      0, 40,
      [&](const Problem& problem) {
        placement = Placement::all(problem);
        for (std::int64_t i = 0; i < 40; ++i)
          if (i % 3 != 0) placement.row[i] = -1;
        placement.head = {-1, 0, -1, -1, -1, 1};
        column.aim(placement, {columns.data(), {2, 40}});
        diagonal.aim(placement, {diagonals.data(), {2, 40}});
      },
      readers);
  std::vector<std::int64_t> expected_columns(2 * 40), expected_diagonals(2 * 40);
  for (std::int64_t slot = 0; slot < 2; ++slot) {
    for (std::int64_t i = 0; i < 40; i += 3) {
      for (std::int64_t j = 0; j <= i; ++j) {
        add_weight(expected_columns[slot * 40 + j], scene.weight[scene.at(i, heads[slot], j)]);
        add_weight(expected_diagonals[slot * 40 + i - j], scene.weight[scene.at(i, heads[slot], j)]);
      }
    }
  }
  EXPECT_TRUE(testing::same_bits(columns, expected_columns));
  EXPECT_TRUE(testing::same_bits(diagonals, expected_diagonals));
}

TEST(ExactSums, RowsNeedNotBeInARow) {
  Scene scene({.rows = 30, .keys = 30, .heads = 2, .kv_heads = 1}, 4);
  const std::vector<std::int64_t> expected = diagonal_sums(scene);
  // The same rows, shown in another order.
  Scene turned = scene;
  for (std::int64_t i = 0; i < 30; ++i) {
    const std::int64_t from = (i * 7) % 30;
    turned.rows[i] = scene.rows[from];
    for (std::int64_t h = 0; h < 2; ++h) {
      turned.softmax[i * 2 + h] = scene.softmax[from * 2 + h];
      for (std::int64_t j = 0; j < 30; ++j) {
        turned.weight[turned.at(i, h, j)] = scene.weight[scene.at(from, h, j)];
        turned.score[turned.at(i, h, j)] = scene.score[scene.at(from, h, j)];
      }
    }
  }
  EXPECT_TRUE(testing::same_bits(expected, sums(turned, DiagonalReader(), 30)));
}

TEST(ExactSums, ARowThatIsNotANumberMarksWhatItReadAndNothingElse) {
  Scene scene({.rows = 50, .keys = 50, .heads = 3, .kv_heads = 1}, 1);
  scene.score[scene.at(20, 1, 3)] = std::numeric_limits<float>::quiet_NaN();
  scene.normalise();
  for (int lanes : {8, 24, 150}) {
    const std::vector<double> columns = as_numbers<double>(column_sums(scene, {.lanes = lanes}));
    const std::vector<double> diagonals = as_numbers<double>(diagonal_sums(scene, {.lanes = lanes}));
    for (std::int64_t h = 0; h < 3; ++h) {
      for (std::int64_t j = 0; j < 50; ++j) {
        EXPECT_EQ(std::isnan(columns[h * 50 + j]), h == 1 && j <= 20) << h << " " << j;
        EXPECT_EQ(std::isnan(diagonals[h * 50 + j]), h == 1 && j <= 20) << h << " " << j;
      }
    }
  }
}

TEST(Log2Edges, CoverEveryDistance) {
  EXPECT_EQ(log2_edges(1), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(log2_edges(2), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(log2_edges(9), (std::vector<std::int64_t>{0, 1, 2, 4, 8, 9}));
}

}  // namespace
}  // namespace regard
