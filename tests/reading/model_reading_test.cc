// Reading a whole model: the small random Llama, whose every weight is checked, so that the statistics can be checked
// against the weights.

#include "reading/model_reading.h"
#include "tensor/error.h"

namespace regard {
namespace {

// Queries and keys as attention used them.
class QueriesAndKeys : public Tap {
 public:
  bool wants(Site site, std::int64_t) const override { return site == Site::rot_q || site == Site::rot_k; }
  void at(Site site, std::int64_t, std::span<const Row>, View<float, 3> value) override {
    auto& to = site == Site::rot_q ? q : k;
    to.emplace_back();
    for (std::int64_t r = 0; r < value.shape[0]; ++r)
      for (std::int64_t h = 0; h < value.shape[1]; ++h)
        for (std::int64_t d = 0; d < value.shape[2]; ++d) to.back().push_back(value(r, h, d));
  }
  std::vector<std::vector<float>> q, k;  // [layer] of [rows, heads, D]
};

// softmax of scale q k^T, causal, [l][h][i][j], in T.
template <typename T>
std::vector<T> patterns(const QueriesAndKeys& from, const ModelConfig& c, std::int64_t tokens) {
  std::vector<T> all(c.layers * c.heads * tokens * tokens);
  for (std::int64_t l = 0; l < c.layers; ++l) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      for (std::int64_t i = 0; i < tokens; ++i) {
        T* row = &all[((l * c.heads + h) * tokens + i) * tokens];
        T max = -std::numeric_limits<T>::infinity(), sum = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          T score = 0;
          for (std::int64_t d = 0; d < c.head_dim; ++d)
            score += static_cast<T>(from.q[l][(i * c.heads + h) * c.head_dim + d]) *
                     static_cast<T>(from.k[l][(j * c.kv_heads + h / (c.heads / c.kv_heads)) * c.head_dim + d]);
          row[j] = score * static_cast<T>(c.attention_scale);
          max = std::max(max, row[j]);
        }
        for (std::int64_t j = 0; j <= i; ++j) sum += row[j] = std::exp(row[j] - max);
        for (std::int64_t j = 0; j <= i; ++j) row[j] /= sum;
      }
    }
  }
  return all;
}

TEST_F(ModelReading, WeightsAreThoseOfTheQueriesAndKeys) {
  State state(model_.config());
  QueriesAndKeys tap;
  FeedOptions options;
  options.tap = &tap;
  feed(model_, state, ids_, 0, options);
  EXPECT_TRUE(within_law_1(all_of(read(everything()).weights), patterns<float>(tap, model_.config(), kTokens),
                           patterns<double>(tap, model_.config(), kTokens)));
}

TEST_F(ModelReading, EveryStatisticIsThatOfTheWeights) {
  const Reading r = read(everything());
  const auto same_token = [&](std::int64_t i, std::int64_t j) { return j >= 0 && j < i && ids_[i] == ids_[j]; };
  expect_sums(r, Statistic::sink, [](std::int64_t, std::int64_t j) { return j == 0; });
  expect_sums(r, Statistic::sink_share, [](std::int64_t, std::int64_t) { return 0; });
  expect_sums(r, Statistic::distance, [](std::int64_t i, std::int64_t j) { return i - j; });
  expect_sums(r, Statistic::previous, [](std::int64_t i, std::int64_t j) { return j == i - 1; });
  expect_sums(r, Statistic::duplicate, [&](std::int64_t i, std::int64_t j) { return same_token(i, j); });
  expect_sums(r, Statistic::induction, [&](std::int64_t i, std::int64_t j) { return same_token(i, j - 1); });

  const std::int64_t L = r.weights.shape()[0], H = r.weights.shape()[1], T = kTokens;
  std::vector<double> entropy, columns(L * H * T), groups(L * H * T * 3), distances(r.distances.size());
  std::vector<float> plain_entropy, plain_columns(L * H * T), plain_groups(L * H * T * 3),
      plain_distances(r.distances.size());
  const std::int64_t bins = r.distances.shape()[2];
  for (std::int64_t l = 0; l < L; ++l) {
    for (std::int64_t h = 0; h < H; ++h) {
      std::int64_t copies = 0;
      for (std::int64_t i = 0; i < T; ++i) {
        double e = 0;
        float plain = 0;
        std::int64_t strongest = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          const float w = r.weights(l, h, i, j);
          if (w > r.weights(l, h, i, strongest)) strongest = j;
          if (w > 0) e -= w * std::log(static_cast<double>(w)), plain -= w * std::log(w);
          columns[(l * H + h) * T + j] += w;
          plain_columns[(l * H + h) * T + j] += w;
          if (const std::int32_t g = r.request.groups[j]; g >= 0) {
            groups[((l * H + h) * T + i) * 3 + g] += w;
            plain_groups[((l * H + h) * T + i) * 3 + g] += w;
          }
          std::int64_t bin = 0;
          while (r.distance_edges[bin + 1] <= i - j) ++bin;
          distances[(l * H + h) * bins + bin] += w;
          plain_distances[(l * H + h) * bins + bin] += w;
        }
        entropy.push_back(e);
        plain_entropy.push_back(plain);
        copies += i + 1 < T && ids_[strongest] == ids_[i + 1];
        EXPECT_EQ(r.top_key(l, h, i, 0), strongest);
        EXPECT_EQ(r.top_weight(l, h, i, 0), r.weights(l, h, i, strongest));
      }
      EXPECT_EQ(r.copying(l, h), static_cast<float>(static_cast<double>(copies) / (T - 1)));
    }
  }
  EXPECT_TRUE(within_law_1(all_of(r.per_row.at(Statistic::entropy)), plain_entropy, entropy));
  EXPECT_TRUE(within_law_1(all_of(r.column_sum), plain_columns, columns));
  EXPECT_TRUE(within_law_1(all_of(r.group_mass), plain_groups, groups));
  EXPECT_TRUE(within_law_1(all_of(r.distances), plain_distances, distances));

  for (const auto& [statistic, mean] : r.mean) {
    const auto counts = [&, statistic = statistic](std::int64_t t) {
      const bool again = std::find(ids_.begin(), ids_.begin() + t, ids_[t]) != ids_.begin() + t;
      if (statistic == Statistic::duplicate || statistic == Statistic::induction) return again;
      return statistic != Statistic::previous || t > 0;
    };
    double sum = 0, n = 0;
    for (std::int64_t t = 0; t < T; ++t)
      if (counts(t)) sum += r.per_row.at(statistic)(1, 2, t), ++n;
    EXPECT_GT(n, 10);
    EXPECT_EQ(mean(1, 2), static_cast<float>(sum / n)) << info(statistic).name;
  }
}

TEST_F(ModelReading, TheBooksBalance) {
  const Reading r = read(everything());
  const std::vector<double> rows = sums<double>(r, [](std::int64_t, std::int64_t) { return 1; });
  // Rows sum to 1, as closely as rows of a plain f32 softmax do.
  State state(model_.config());
  QueriesAndKeys tap;
  FeedOptions options;
  options.tap = &tap;
  feed(model_, state, ids_, 0, options);
  const std::vector<float> plain = patterns<float>(tap, model_.config(), kTokens);
  std::vector<double> plain_rows(rows.size());
  for (std::size_t i = 0; i < plain.size(); ++i) plain_rows[i / kTokens] += plain[i];
  EXPECT_TRUE(within_law_1(rows, plain_rows, std::vector<double>(rows.size(), 1.0)));
  // Column sums add up to the number of rows x heads, as far off as the rows are together and one rounding to f32 each.
  double columns = 0, allowed = 0;
  for (float c : all_of(r.column_sum)) columns += c;
  for (double row : rows) allowed += std::fabs(row - 1);
  EXPECT_NEAR(columns, static_cast<double>(rows.size()), allowed + static_cast<double>(rows.size()) * 0x1p-24);
}

TEST_F(ModelReading, ResidualsAreThoseOfTheModel) {
  State state(model_.config());
  Tensor<float, 2> resid({kTokens, model_.config().width});
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < kTokens; ++i) rows.push_back({ids_[i], 0, i});
  forward(model_, state, rows, resid.view());
  ReadingRequest request;
  request.statistics = {};
  request.resid = true;
  request.rows = {-1, 3};
  const Reading r = read(request, 7);
  ASSERT_EQ(r.resid.shape()[0], model_.config().layers + 1);
  for (std::int64_t c = 0; c < model_.config().width; ++c) {
    EXPECT_EQ(r.resid(3, 0, c), resid(kTokens - 1, c));
    EXPECT_EQ(r.resid(3, 1, c), resid(3, c));
  }
}

TEST_F(ModelReading, LookingChangesNothing) {
  const auto run = [&](Tap* tap) {
    State state(model_.config());
    return testing::all_logits(model_, state, ids_, 64, 0, tap);
  };
  ReadingTap tap(model_, everything(), ids_);
  EXPECT_TRUE(same_bits(run(nullptr), run(&tap)));
}

TEST_F(ModelReading, SameBitsInChunksOnThreadsAndTargets) {
  const std::vector<float> expected = flat(read(everything()));
  EXPECT_TRUE(same_bits(expected, flat(read(everything(), 1))));
  EXPECT_TRUE(same_bits(expected, flat(read(everything(), 7))));
  testing::on_thread_counts([&](int) { EXPECT_TRUE(same_bits(expected, flat(read(everything(), 50)))); });
  testing::on_each_target([&](const std::string&) { EXPECT_TRUE(same_bits(expected, flat(read(everything())))); });
}

TEST_F(ModelReading, SameBitsBesideTwoOtherSequences) {
  const std::vector<float> expected = flat(read(everything()));
  ReadingRequest request = everything();
  request.sequence = 1;
  ReadingTap tap(model_, request, ids_);
  State state(model_.config(), 3);
  const std::vector<std::int32_t> others[] = {testing::some_ids(200, 256, 2), ids_, testing::some_ids(90, 256, 3)};
  std::int64_t at[3] = {};
  for (std::int64_t step = 0; at[1] < kTokens; ++step) {
    std::vector<Row> rows;
    for (std::int64_t i = 0; i < 1 + step % 9; ++i)
      for (int s : {2, 0, 1, 0})
        if (at[s] < std::ssize(others[s])) rows.push_back({others[s][at[s]], s, at[s]}), ++at[s];
    Tensor<float, 2> resid({std::ssize(rows), model_.config().width});
    forward(model_, state, rows, resid.view(), &tap);
  }
  EXPECT_TRUE(same_bits(expected, flat(tap.finish(&state))));
}

TEST_F(ModelReading, ChosenLayersHeadsAndRowsAreThoseOfTheWhole) {
  const Reading whole = read(everything());
  ReadingRequest request = everything();
  request.layers = {2, 0};
  request.heads = {-1, 1, 3};
  request.rows = {-1, 5};
  const Reading part = read(request);
  const std::int64_t layers[] = {2, 0}, heads[] = {5, 1, 3}, rows[] = {kTokens - 1, 5};
  EXPECT_EQ(part.request.heads, (std::vector<std::int64_t>{5, 1, 3}));
  EXPECT_EQ(part.request.rows, (std::vector<std::int64_t>{kTokens - 1, 5}));
  const auto same = [](const float& a, const float& b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  for (int l = 0; l < 2; ++l) {
    for (int h = 0; h < 3; ++h) {
      EXPECT_TRUE(same(part.copying(l, h), whole.copying(layers[l], heads[h])));
      for (std::int64_t t = 0; t < kTokens; ++t) {
        for (const auto& [statistic, values] : part.per_row)
          EXPECT_TRUE(same(values(l, h, t), whole.per_row.at(statistic)(layers[l], heads[h], t)));
        EXPECT_TRUE(same(part.column_sum(l, h, t), whole.column_sum(layers[l], heads[h], t)));
        EXPECT_TRUE(same(part.value_norm(l, h, t), whole.value_norm(layers[l], heads[h], t)));
        EXPECT_TRUE(
            same(part.norm_weighted_column_sum(l, h, t), whole.norm_weighted_column_sum(layers[l], heads[h], t)));
        EXPECT_TRUE(same(part.mixing(l, t), whole.mixing(layers[l], t)));
        for (int r = 0; r < 2; ++r)
          EXPECT_TRUE(same(part.norm_weighted(l, h, r, t), whole.norm_weighted(layers[l], heads[h], rows[r], t)));
        for (int r = 0; r < 2; ++r)
          EXPECT_TRUE(same(part.weights(l, h, r, t), whole.weights(layers[l], heads[h], rows[r], t)));
      }
      for (std::int64_t b = 0; b < part.distances.shape()[2]; ++b)
        EXPECT_TRUE(same(part.distances(l, h, b), whole.distances(layers[l], heads[h], b)));
      for (int r = 0; r < 2; ++r) {
        for (int k = 0; k < 5; ++k) {
          EXPECT_TRUE(same(part.top_weight(l, h, r, k), whole.top_weight(layers[l], heads[h], rows[r], k)));
          EXPECT_EQ(part.top_key(l, h, r, k), whole.top_key(layers[l], heads[h], rows[r], k));
        }
      }
    }
  }
}

// What is over all layers and heads is not changed by choosing some of them.
TEST_F(ModelReading, ChosenRowsOfTheWholeModelAreThoseOfTheWhole) {
  const Reading whole = read(everything());
  ReadingRequest request = everything();
  request.layers = {1};
  request.heads = {0};
  request.rows = {-1, 5};
  const Reading part = read(request);
  const std::int64_t rows[] = {kTokens - 1, 5};
  ASSERT_EQ(part.rollout.shape()[0], 4);
  for (int r = 0; r < 2; ++r) {
    for (std::int64_t l = 0; l < 4; ++l) {
      for (std::int64_t s = 0; s < kTokens; ++s) EXPECT_EQ(part.rollout(l, r, s), whole.rollout(l, rows[r], s));
      EXPECT_EQ(part.lens[l][r].final.logit, whole.lens[l][rows[r]].final.logit);
      EXPECT_EQ(part.lens[l][r].rank, whole.lens[l][rows[r]].rank);
    }
    EXPECT_EQ(part.direct_token[r], whole.direct_token[rows[r]]);
    EXPECT_EQ(part.direct_token[r], whole.lens[3][rows[r]].final.id);
    EXPECT_EQ(part.direct.total(r), whole.direct.total(rows[r]));
    for (std::int64_t h = 0; h < 6; ++h) EXPECT_EQ(part.direct.heads(2, h, r), whole.direct.heads(2, h, rows[r]));
  }
}

TEST_F(ModelReading, WhatIsMadeFromOthersDoesNotShowThem) {
  ReadingRequest request;
  request.statistics = {Statistic::norm_weighted, Statistic::norm_weighted_column_sum, Statistic::lens};
  const Reading only = read(request);
  EXPECT_EQ(only.weights.size() + only.value_norm.size() + only.column_sum.size() + only.resid.size(), 0);
  request.statistics.insert(request.statistics.begin(), {Statistic::weights, Statistic::value_norm});
  const Reading both = read(request);
  EXPECT_GT(both.weights.size(), 0);
  EXPECT_TRUE(same_bits(all_of(only.norm_weighted), all_of(both.norm_weighted)));
}

TEST_F(ModelReading, DirectEffectsOfAChosenTokenAndItsRival) {
  ReadingRequest request;
  request.statistics = {Statistic::direct};
  request.token = 7;
  const Reading seven = read(request);
  EXPECT_EQ(seven.direct_token, std::vector<std::int32_t>{7});
  request.token = 9;
  const Reading nine = read(request);
  request.against = 7;
  EXPECT_NEAR(read(request).direct.heads(1, 2, 0), nine.direct.heads(1, 2, 0) - seven.direct.heads(1, 2, 0), 1e-12);
}

// ||v_j W_O^h|| from each head's contribution: with all weight on key 0 (row 0 reads only itself), result = v_0 W_O^h.
TEST_F(ModelReading, ValueNormIsTheNormOfWhatAHeadWrites) {
  class Results : public Tap {
   public:
    bool wants(Site site, std::int64_t) const override { return site == Site::result; }
    void at(Site, std::int64_t, std::span<const Row>, View<float, 3> value) override {
      for (std::int64_t h = 0; h < value.shape[1]; ++h) {
        double squares = 0;
        for (std::int64_t c = 0; c < value.shape[2]; ++c)
          squares += static_cast<double>(value(0, h, c)) * value(0, h, c);
        norms.push_back(std::sqrt(squares));
      }
    }
    std::vector<double> norms;
  };
  State state(model_.config());
  Results results;
  FeedOptions options;
  options.tap = &results;
  feed(model_, state, ids_, 0, options);
  const Reading r = read(everything());
  // The results are f32 sums of 16 products each.
  for (std::int64_t l = 0, n = 0; l < 3; ++l)
    for (std::int64_t h = 0; h < 6; ++h, ++n)
      EXPECT_NEAR(r.value_norm(l, h, 0), results.norms[n], results.norms[n] * 17 * 0x1p-24);
}

TEST_F(ModelReading, ARowThatNeverPassedIsAnError) {
  ReadingTap tap(model_, {}, ids_);
  State state(model_.config());
  FeedOptions options;
  options.tap = &tap;
  feed(model_, state, std::span(ids_).first(10), 0, options);
  EXPECT_THROW(tap.finish(), Error);
}

TEST_F(ModelReading, MoreRowsThanPlannedAreAnError) {
  ReadingTap tap(model_, {}, std::span(ids_).first(10));
  State state(model_.config());
  FeedOptions options;
  options.tap = &tap;
  EXPECT_THROW(feed(model_, state, ids_, 0, options), Error);
}

TEST_F(ModelReading, RowsReadBeforeTheTapCameAreNotNumbers) {
  State state(model_.config());
  feed(model_, state, std::span(ids_).first(20));
  ReadingRequest request;
  request.rows = {30};
  ReadingTap tap(model_, request, ids_);
  FeedOptions options;
  options.tap = &tap;
  feed(model_, state, std::span(ids_).subspan(20), 0, options);
  const Reading late = tap.finish(), whole = read(request);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    EXPECT_EQ(std::isnan(late.per_row.at(Statistic::entropy)(0, 0, t)), t < 20);
    EXPECT_EQ(late.weights(1, 1, 0, t), whole.weights(1, 1, 0, t));
  }
}

TEST_F(ModelReading, BytesAreToldBeforehand) {
  // What the results take, and no S x S: twice the text, at most a little over twice the bytes.
  ReadingRequest request = everything();
  const Reading r = read(request);
  EXPECT_GE(bytes_needed(request, model_.config(), kTokens), std::ssize(flat(r)) * 4);
  ReadingRequest last;
  const std::int64_t once = bytes_needed(last, model_.config(), 1000),
                     twice = bytes_needed(last, model_.config(), 2000);
  EXPECT_LE(twice, 2 * once);
  EXPECT_GT(twice, once);
}

}  // namespace
}  // namespace regard
