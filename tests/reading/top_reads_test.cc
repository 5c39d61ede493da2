#include "reading/top_reads.h"

#include <gtest/gtest.h>

#include <numeric>

#include "reading/tiles.h"

namespace regard {
namespace {

using testing::all_kinds;
using testing::Cut;
using testing::Scene;

// Shows all rows; aim(placement) points the reader at its output.
template <typename Aim>
void show_all(const Scene& scene, Reader& reader, const Cut& cut, Aim&& aim) {
  Reader* readers[] = {&reader};
  Placement placement;
  for (std::int64_t begin = 0; begin < scene.options.rows; begin += cut.chunk) {
    const auto prepare = [&](const Problem& problem) {
      placement = Placement::all(problem);
      for (std::int32_t& slot : placement.row) slot += static_cast<std::int32_t>(begin);
      aim(placement);
    };
    scene.show(begin, std::min(begin + cut.chunk, scene.options.rows), prepare, readers, cut.lanes, cut.seed);
  }
}

struct Read {
  float weight = 0;
  std::int32_t key = -1;
  bool operator==(const Read&) const = default;
};

// [H, T, k]
std::vector<Read> top(const Scene& scene, std::int64_t k, const Cut& cut = {}) {
  const std::int64_t T = scene.options.rows, H = scene.options.heads;
  std::vector<float> weight(H * T * k, -5);
  std::vector<std::int32_t> key(H * T * k, -5);
  TopReader reader;
  show_all(scene, reader, cut, [&](const Placement& placement) {
    reader.aim(placement, {weight.data(), {H, T, k}}, {key.data(), {H, T, k}});
  });
  std::vector<Read> reads;
  for (std::size_t i = 0; i < weight.size(); ++i) reads.push_back({weight[i], key[i]});
  return reads;
}

std::vector<Read> sorted_top(const Scene& scene, std::int64_t k) {
  std::vector<Read> reads;
  for (std::int64_t h = 0; h < scene.options.heads; ++h) {
    for (std::int64_t i = 0; i < scene.options.rows; ++i) {
      std::vector<Read> row;
      for (std::int64_t j = 0; j < scene.options.keys; ++j)
        if (scene.weight[scene.at(i, h, j)] > 0)
          row.push_back({scene.weight[scene.at(i, h, j)], static_cast<std::int32_t>(j)});
      std::stable_sort(row.begin(), row.end(), [](const Read& a, const Read& b) { return a.weight > b.weight; });
      row.resize(k);
      reads.insert(reads.end(), row.begin(), row.end());
    }
  }
  return reads;
}

TEST(TopReader, IsTheHeadOfTheSortedRow) {
  for (const Scene& scene : all_kinds())
    for (std::int64_t k : {1, 8, 300}) EXPECT_EQ(top(scene, k), sorted_top(scene, k));
}

TEST(TopReader, TakesTheLowestKeyAmongEquals) {
  const Scene flat({.rows = 300, .keys = 300, .heads = 2, .kv_heads = 1, .flat = true}, 1);
  EXPECT_EQ(top(flat, 5), sorted_top(flat, 5));
  EXPECT_EQ(top(flat, 5)[299 * 5 + 4].key, 4);
  Scene few({.rows = 140, .keys = 140, .heads = 3, .kv_heads = 1}, 2);
  for (float& s : few.score) s = std::round(s);  // seven different weights in a row
  few.normalise();
  EXPECT_EQ(top(few, 20), sorted_top(few, 20));
}

TEST(TopReader, SurvivesRowsThatGrowAllAlong) {  // every key is the strongest so far
  Scene scene({.rows = 20, .keys = 400, .heads = 4, .kv_heads = 2, .first_position = 380}, 1);
  for (std::int64_t r = 0; r < 20 * 4; ++r)
    for (std::int64_t j = 0; j < 400; ++j)
      if (!std::isinf(scene.score[r * 400 + j])) scene.score[r * 400 + j] = 0.01f * j;
  scene.normalise();
  EXPECT_EQ(top(scene, 8), sorted_top(scene, 8));
}

TEST(TopReader, SameReadsForEveryTargetThreadCountChunkAndTile) {
  for (const Scene& scene : all_kinds()) {
    const std::vector<Read> expected = top(scene, 4);
    testing::on_each_target([&](const std::string&) {
      testing::on_thread_counts(
          [&](int threads) { EXPECT_EQ(expected, top(scene, 4, {.seed = static_cast<std::uint64_t>(threads)})); });
    });
    for (const Cut& cut : {Cut{1, 8, 1}, Cut{1, 200, 1}, Cut{7, 16, 3}, Cut{7, 48, 4}, Cut{1 << 20, 100, 5}})
      EXPECT_EQ(expected, top(scene, 4, cut));
  }
}

TEST(WeightsReader, GivesEveryWeightOfTheRowsThatWereChosen) {
  for (const Scene& scene : all_kinds()) {
    const std::int64_t T = scene.options.rows, H = scene.options.heads, S = scene.options.keys;
    const std::vector<std::int64_t> rows = T > 2 ? std::vector<std::int64_t>{T - 1, 2} : std::vector<std::int64_t>{0};
    const std::int64_t n = std::ssize(rows);
    std::vector<float> weight(H * n * S, -5);
    WeightsReader reader;
    Reader* readers[] = {&reader};
    Placement placement;
    scene.show(
        0, T,
        [&](const Problem& problem) {
          placement = Placement::all(problem);
          std::fill(placement.row.begin(), placement.row.end(), -1);
          for (std::int64_t r = 0; r < n; ++r) placement.row[rows[r]] = static_cast<std::int32_t>(r);
          reader.aim(placement, {weight.data(), {H, n, S}});
        },
        readers);
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t r = 0; r < n; ++r)
        for (std::int64_t j = 0; j < S; ++j)
          EXPECT_EQ(weight[(h * n + r) * S + j], scene.weight[scene.at(rows[r], h, j)]);
  }
}

// [H, T, groups]
std::vector<float> group_mass(const Scene& scene, const std::vector<std::int32_t>& group, std::int64_t groups,
                              const Cut& cut = {}) {
  const std::int64_t T = scene.options.rows, H = scene.options.heads;
  std::vector<float> mass(H * T * groups, -5);
  GroupReader reader(group);
  show_all(scene, reader, cut, [&](const Placement& placement) {
    reader.aim(placement, {mass.data(), {H, T, groups}});
  });
  return mass;
}

TEST(GroupReader, AsCloseToTheTruthAsPlainF32) {
  for (const Scene& scene : all_kinds()) {
    testing::Numbers numbers(3);
    std::vector<std::int32_t> group;  // spans of 1 to 40 positions, groups that come back, positions in none
    while (std::ssize(group) < scene.options.keys)
      group.insert(group.end(), 1 + numbers.below(40), static_cast<std::int32_t>(numbers.below(5)) - 1);
    group.resize(scene.options.keys);
    std::vector<float> plain;
    std::vector<double> truth;
    for (std::int64_t h = 0; h < scene.options.heads; ++h) {
      for (std::int64_t i = 0; i < scene.options.rows; ++i) {
        float p[4] = {};
        double t[4] = {};
        for (std::int64_t j = 0; j < scene.options.keys; ++j) {
          if (group[j] < 0) continue;
          p[group[j]] += scene.weight[scene.at(i, h, j)];
          t[group[j]] += scene.truth[scene.at(i, h, j)];
        }
        plain.insert(plain.end(), p, p + 4);
        truth.insert(truth.end(), t, t + 4);
      }
    }
    const std::vector<float> mass = group_mass(scene, group, 4);
    EXPECT_TRUE(testing::within_law_1(mass, plain, truth));
    testing::expect_same_bits_everywhere([&] { return group_mass(scene, group, 4, {.seed = 2}); });
    for (const Cut& cut : {Cut{1, 8, 1}, Cut{7, 16, 3}, Cut{1 << 20, 100, 5}})
      EXPECT_TRUE(testing::same_bits(mass, group_mass(scene, group, 4, cut)));
  }
}

TEST(CopyReader, CountsRowsWhoseStrongestReadIsWhatComesNext) {
  for (const Scene& scene : all_kinds()) {
    const std::int64_t T = scene.options.rows, H = scene.options.heads;
    const std::int64_t n = std::max(scene.options.keys, scene.rows.back().position + 1);
    testing::Numbers numbers(9);
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(numbers.below(4)));
    const std::vector<Read> strongest = top(scene, 1);
    std::vector<std::int64_t> expected(H), in_needle(H);
    for (std::int64_t h = 0; h < H; ++h) {
      for (std::int64_t i = 0; i < T; ++i) {
        const std::int64_t key = strongest[h * T + i].key, position = scene.rows[i].position;
        if (key < 0 || position + 1 >= n || tokens[key] != tokens[position + 1]) continue;
        ++expected[h];
        in_needle[h] += key >= 3 && key < 20;
      }
    }
    for (const Cut& cut : {Cut{}, Cut{7, 16, 3}, Cut{1, 8, 1}}) {
      std::vector<std::int64_t> copies(H), needle(H);
      CopyReader all(tokens), some(tokens, 3, 20);
      show_all(scene, all, cut, [&](const Placement& placement) { all.aim(placement, {copies.data(), {H}}); });
      show_all(scene, some, cut, [&](const Placement& placement) { some.aim(placement, {needle.data(), {H}}); });
      EXPECT_EQ(copies, expected);
      EXPECT_EQ(needle, in_needle);
    }
  }
}

}  // namespace
}  // namespace regard
