#include "reading/row_readers.h"

#include <gtest/gtest.h>

#include <memory>

#include "reading/tiles.h"

namespace regard {
namespace {

using testing::all_kinds;
using testing::Cut;
using testing::max_error;
using testing::Scene;
using testing::within_law_1;

// What readers give for all rows and heads of a scene, [reader, H, T].
std::vector<float> values(const Scene& scene, std::span<RowReader* const> readers, const Cut& cut) {
  const std::int64_t T = scene.options.rows, H = scene.options.heads;
  std::vector<float> out(readers.size() * H * T, -77);
  const std::vector<Reader*> all(readers.begin(), readers.end());
  Placement placement;
  for (std::int64_t begin = 0; begin < T; begin += cut.chunk) {
    const auto aim = [&](const Problem& problem) {
      placement = Placement::all(problem);
      for (std::int32_t& slot : placement.row) slot += static_cast<std::int32_t>(begin);
      for (std::size_t i = 0; i < readers.size(); ++i) readers[i]->aim(placement, {out.data() + i * H * T, {H, T}});
    };
    scene.show(begin, std::min(begin + cut.chunk, T), aim, all, cut.lanes, cut.seed);
  }
  return out;
}
std::vector<float> values(const Scene& scene, RowReader&& reader) {
  RowReader* const one[] = {&reader};
  return values(scene, one, {});
}

// f(row, head, weights or scores of that row) for every [H, T].
template <typename T, typename F>
std::vector<T> per_row(const Scene& scene, F&& f) {
  std::vector<T> out;
  for (std::int64_t h = 0; h < scene.options.heads; ++h)
    for (std::int64_t i = 0; i < scene.options.rows; ++i) out.push_back(f(i, h));
  return out;
}

// sum_j P_ij factor(i, j): in float64 from the exact weights, and in plain f32 from the f32 ones.
template <typename Factor>
std::vector<double> truth_sum(const Scene& scene, Factor&& factor) {
  return per_row<double>(scene, [&](std::int64_t i, std::int64_t h) {
    double sum = 0;
    for (std::int64_t j = 0; j < scene.options.keys; ++j) sum += scene.truth[scene.at(i, h, j)] * factor(i, j);
    return sum;
  });
}
template <typename Factor>
std::vector<float> plain_sum(const Scene& scene, Factor&& factor) {
  return per_row<float>(scene, [&](std::int64_t i, std::int64_t h) {
    float sum = 0;
    for (std::int64_t j = 0; j < scene.options.keys; ++j)
      sum += scene.weight[scene.at(i, h, j)] * static_cast<float>(factor(i, j));
    return sum;
  });
}

std::vector<double> entropy_truth(const Scene& scene) {
  return per_row<double>(scene, [&](std::int64_t i, std::int64_t h) {
    double sum = 0;
    for (std::int64_t j = 0; j < scene.options.keys; ++j) {
      const double p = scene.truth[scene.at(i, h, j)];
      if (p > 0) sum -= p * std::log(p);
    }
    return sum;
  });
}

TEST(LogSumExpReader, AsCloseToTheTruthAsPlainF32) {
  for (const Scene& scene : all_kinds()) {
    const auto plain = per_row<float>(scene, [&](std::int64_t i, std::int64_t h) {
      const RowSoftmax& s = scene.softmax[i * scene.options.heads + h];
      return s.max + std::log(s.sum);
    });
    const auto truth = per_row<double>(
        scene, [&](std::int64_t i, std::int64_t h) { return scene.lse_truth[i * scene.options.heads + h]; });
    testing::on_each_target(
        [&](const std::string&) { EXPECT_TRUE(within_law_1(values(scene, LogSumExpReader()), plain, truth)); });
  }
}

TEST(EntropyReader, AsCloseToTheTruthAsPlainF32) {
  for (const Scene& scene : all_kinds()) {
    const auto plain = per_row<float>(scene, [&](std::int64_t i, std::int64_t h) {  // LSE - sum P s
      const RowSoftmax& s = scene.softmax[i * scene.options.heads + h];
      if (std::isinf(s.max)) return 0.0f;
      float sum = 0, mass = 0;
      for (std::int64_t j = 0; j < scene.options.keys; ++j) {
        const float p = scene.weight[scene.at(i, h, j)];
        if (p > 0) sum += p * scene.score[scene.at(i, h, j)], mass += p;
      }
      const float lse = s.max + std::log(s.sum);
      return scene.options.sinks ? lse * mass - sum : lse - sum;
    });
    testing::on_each_target([&](const std::string&) {
      EXPECT_TRUE(within_law_1(values(scene, EntropyReader()), plain, entropy_truth(scene)));
    });
  }
}

TEST(EntropyReader, LiesBetweenZeroAndTheLogOfTheKeysAndReachesBoth) {
  for (const Scene& scene : all_kinds()) {
    const std::vector<float> entropy = values(scene, EntropyReader());
    for (float h : entropy) {
      EXPECT_GE(h, 0);
      // The largest sum -p log p of n weights is log n, with a sink as with one key more.
      EXPECT_LE(h, std::log(scene.options.keys + scene.options.sinks) * (1 + 1e-6));
    }
  }
  const Scene flat({.rows = 200, .keys = 200, .heads = 3, .kv_heads = 1, .flat = true}, 1);
  const std::vector<float> entropy = values(flat, EntropyReader());
  EXPECT_EQ(entropy[0], 0);  // one visible key
  for (std::int64_t i = 0; i < 200; ++i) EXPECT_NEAR(entropy[i], std::log(i + 1.0), 200 * 0x1p-24 * std::log(200.0));
}

TEST(SinkShareReader, WeightsAndSinkAddUpToOne) {
  for (const Scene& scene : all_kinds()) {
    const std::vector<float> share = values(scene, SinkShareReader());
    const std::vector<double> visible = truth_sum(scene, [](std::int64_t, std::int64_t) { return 1.0; });
    std::vector<double> truth;
    for (std::size_t i = 0; i < share.size(); ++i) {
      const bool nothing = visible[i] == 0;
      truth.push_back(scene.options.sinks ? 1 - visible[i] : 0.0);
      if (!scene.options.sinks && !nothing) {
        EXPECT_NEAR(visible[i], 1, 1e-12);
      }
    }
    if (!scene.options.sinks) {
      EXPECT_EQ(max_error(share, truth), 0);
      continue;
    }
    const auto plain = per_row<float>(scene, [&](std::int64_t i, std::int64_t h) {
      const RowSoftmax& s = scene.softmax[i * scene.options.heads + h];
      return std::exp(scene.sinks[h] - s.max) / s.sum;
    });
    EXPECT_TRUE(within_law_1(share, plain, truth));
  }
}

TEST(DistanceReader, AsCloseToTheTruthAsPlainF32) {
  for (const Scene& scene : all_kinds()) {
    const auto distance = [&](std::int64_t i, std::int64_t j) { return std::abs(scene.rows[i].position - j); };
    testing::on_each_target([&](const std::string&) {
      EXPECT_TRUE(
          within_law_1(values(scene, DistanceReader()), plain_sum(scene, distance), truth_sum(scene, distance)));
    });
  }
}

TEST(OffsetAndKeyReaders, GiveTheWeightItself) {
  for (const Scene& scene : all_kinds()) {
    for (std::int64_t offset : {0, 1, 5, 129}) {
      const auto at = [&](std::int64_t i, std::int64_t j) { return j == scene.rows[i].position - offset; };
      EXPECT_EQ(max_error(values(scene, OffsetReader(offset)), plain_sum(scene, at)), 0);
    }
    for (std::int64_t key : {0, 3, 128, 1000}) {
      const auto at = [&](std::int64_t, std::int64_t j) { return j == key; };
      EXPECT_EQ(max_error(values(scene, KeyReader(key)), plain_sum(scene, at)), 0);
    }
  }
}

// Token ids with many and few repeats.
std::vector<std::int32_t> some_tokens(std::int64_t n, std::int64_t kinds) {
  testing::Numbers numbers(5);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(numbers.below(kinds)));
  return tokens;
}

TEST(TokenReader, ReadsWhatEarlierOccurrencesPointAt) {
  for (const Scene& scene : all_kinds()) {
    const std::int64_t last = scene.rows.back().position + 1;
    for (std::int64_t kinds : {1, 4, 40}) {
      const std::vector<std::int32_t> tokens = some_tokens(std::max(last, scene.options.keys), kinds);
      const TokenPlaces places(tokens);
      for (int shift : {0, 1}) {
        const auto points = [&](std::int64_t i, std::int64_t j) {
          const std::int64_t position = scene.rows[i].position, source = j - shift;
          return source >= 0 && source < position && tokens[source] == tokens[position] ? 1.0 : 0.0;
        };
        EXPECT_TRUE(within_law_1(values(scene, TokenReader(places, shift)), plain_sum(scene, points),
                                 truth_sum(scene, points)));
      }
    }
  }
}

TEST(TokenReader, IsTheDiagonalOfInductionOnATextSaidTwice) {
  const std::int64_t n = 50;
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < 2 * n; ++i) tokens.push_back(static_cast<std::int32_t>(i % n));
  const Scene scene({.rows = 2 * n, .keys = 2 * n, .heads = 2, .kv_heads = 1}, 3);
  const std::vector<float> induction = values(scene, TokenReader(TokenPlaces(tokens), 1));
  const std::vector<float> diagonal = values(scene, OffsetReader(n - 1));
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < 2 * n; ++i) {
      EXPECT_EQ(induction[h * 2 * n + i], i < n ? 0.0f : diagonal[h * 2 * n + i]);
      if (i >= n) {
        EXPECT_GT(induction[h * 2 * n + i], 0);
      }
    }
  }
}

TEST(TokenPlaces, ListsEarlierOccurrences) {
  const TokenPlaces places(std::vector<std::int32_t>{7, 3, 7, 7, 3, 9});
  const auto earlier = [&](std::int64_t i) {
    const auto found = places.earlier(i);
    return std::vector<std::int32_t>(found.begin(), found.end());
  };
  EXPECT_EQ(earlier(0), (std::vector<std::int32_t>{}));
  EXPECT_EQ(earlier(3), (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(earlier(4), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(earlier(5), (std::vector<std::int32_t>{}));
  EXPECT_EQ(earlier(6), (std::vector<std::int32_t>{}));
  EXPECT_EQ(earlier(-1), (std::vector<std::int32_t>{}));
}

TEST(RowReaders, RowsThatSeeNothingHaveTheDefinedValues) {
  for (bool sinks : {false, true}) {
    Scene scene({.rows = 3, .keys = 140, .heads = 2, .kv_heads = 1, .first_position = -2, .sinks = sinks}, 1);
    // Rows at positions -2 and -1 see nothing; the one at 0 sees itself.
    const std::vector<float> lse = values(scene, LogSumExpReader()), entropy = values(scene, EntropyReader()),
                             share = values(scene, SinkShareReader());
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(lse[h * 3 + i], sinks ? scene.sinks[h] : -std::numeric_limits<float>::infinity());
        EXPECT_EQ(entropy[h * 3 + i], 0);
        EXPECT_EQ(share[h * 3 + i], sinks ? 1 : 0);
      }
      EXPECT_GT(lse[h * 3 + 2], -std::numeric_limits<float>::infinity());
    }
  }
}

TEST(RowReaders, NotANumberStaysNotANumber) {
  Scene scene({.rows = 20, .keys = 20, .heads = 2, .kv_heads = 1}, 1);
  scene.score[scene.at(7, 1, 3)] = std::numeric_limits<float>::quiet_NaN();
  scene.normalise();
  const std::vector<float> entropy = values(scene, EntropyReader());
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(std::isnan(entropy[h * 20 + i]), h == 1 && i == 7);
}

TEST(RowReaders, SameBitsForEveryTargetThreadCountChunkAndTile) {
  for (const Scene& scene : all_kinds()) {
    const std::int64_t last = scene.rows.back().position + 1;
    const TokenPlaces places(some_tokens(std::max(last, scene.options.keys), 6));
    const auto make = [&](const Cut& cut) {
      LogSumExpReader lse;
      EntropyReader entropy;
      SinkShareReader sink;
      DistanceReader distance;
      KeyReader key(0);
      OffsetReader previous(1);
      TokenReader duplicate(places, 0), induction(places, 1);
      RowReader* const readers[] = {&lse, &entropy, &sink, &distance, &key, &previous, &duplicate, &induction};
      return values(scene, readers, cut);
    };
    const std::vector<float> expected = make({});
    testing::expect_same_bits_everywhere([&] { return make({.seed = 2}); });
    for (const Cut& cut : {Cut{1, 8, 1}, Cut{1, 200, 1}, Cut{7, 16, 3}, Cut{7, 48, 4}, Cut{1 << 20, 100, 5}})
      EXPECT_TRUE(testing::same_bits(expected, make(cut)));
  }
}

}  // namespace
}  // namespace regard
