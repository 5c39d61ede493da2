// Rollout of chosen rows: the product of the patterns, with the same bits however the layers' weights come again.

#include "reading/rollout.h"

#include "reading/model_reading.h"
#include "reading/replay.h"
#include "tensor/error.h"

namespace regard {
namespace {

// r_l = r_{l+1} (mean_h P_l,h + I) / 2 with the whole matrices, [l][row][s].
template <typename T>
std::vector<T> plain_rollout(const Reading& r, std::span<const std::int64_t> rows) {
  const std::int64_t L = r.weights.shape()[0], H = r.weights.shape()[1], S = r.tokens, R = std::ssize(rows);
  std::vector<T> all((L + 1) * R * S);
  for (std::int64_t i = 0; i < R; ++i) all[(L * R + i) * S + rows[i]] = 1;
  for (std::int64_t l = L - 1; l >= 0; --l) {
    for (std::int64_t i = 0; i < R; ++i) {
      const T* above = &all[((l + 1) * R + i) * S];
      T* here = &all[(l * R + i) * S];
      for (std::int64_t k = 0; k < S; ++k) {
        here[k] += above[k] / 2;
        for (std::int64_t j = 0; j <= k; ++j) {
          T mean = 0;
          for (std::int64_t h = 0; h < H; ++h) mean += static_cast<T>(r.weights(l, h, k, j));
          here[j] += above[k] * mean / static_cast<T>(H) / 2;
        }
      }
    }
  }
  return all;
}

TEST_F(ModelReading, RolloutIsTheProductOfThePatterns) {
  const std::int64_t rows[] = {kTokens - 1, 60};
  const auto run = [&](std::int64_t chunk) {
    State state(model_.config(), 2);
    feed(model_, state, std::span(ids_).first(20), 0);  // another sequence, not ours
    QueriesTap tap(model_, 1);
    FeedOptions options;
    options.chunk = chunk;
    options.tap = &tap;
    feed(model_, state, ids_, 1, options);
    const Tensor<float, 3> result = rollout(tap, state.cache, rows);
    return std::vector<float>(result.data(), result.data() + result.size());
  };
  const Reading r = read(everything());
  const std::vector<float> result = run(512);
  double row_error =
      kTokens * 0x1p-25;  // a share that starts at 1 is off by as much as the rows it passes; and f32 results
  for (double sum : sums<double>(r, [](std::int64_t, std::int64_t) { return 1; }))
    row_error = std::max(row_error, std::fabs(sum - 1));
  EXPECT_TRUE(within_law_1(result, plain_rollout<float>(r, rows), plain_rollout<double>(r, rows)));
  for (std::size_t row = 0; row < result.size(); row += kTokens)
    EXPECT_NEAR(std::accumulate(result.begin() + row, result.begin() + row + kTokens, 0.0), 1, 3 * row_error);
  EXPECT_TRUE(same_bits(result, run(7)));
  EXPECT_TRUE(same_bits(result, run(1)));
  std::vector<float> of_rows;
  for (std::int64_t l = 0; l < 4; ++l)
    for (const std::int64_t row : rows)
      of_rows.insert(of_rows.end(), &r.rollout(l, row, 0), &r.rollout(l, row, 0) + kTokens);
  EXPECT_TRUE(same_bits(result, of_rows));
  testing::on_thread_counts([&](int) { EXPECT_TRUE(same_bits(result, run(64))); });
  testing::on_each_target([&](const std::string&) { EXPECT_TRUE(same_bits(result, run(64))); });
}

// However few residuals are kept, and whichever way the weights come again.
TEST(Replay, GivesTheSameBitsFromAnyNumberOfKeptResiduals) {
  const testing::TinyModelFile file({.layers = 9});
  const Model model = Model::load(file.path());
  const std::vector<std::int32_t> ids = testing::some_ids(kTokens, model.config().vocabulary);
  const std::int64_t rows[] = {kTokens - 1, 60}, once = kTokens * model.config().width * 4;
  State state(model.config());
  QueriesTap queries(model);
  FeedOptions options;
  options.tap = &queries;
  feed(model, state, ids, 0, options);
  const Tensor<float, 3> expected = rollout(queries, state.cache, rows);
  class Count : public Tap {
   public:
    std::vector<Reader*> readers(std::int64_t, std::span<const Row>) override { return ++runs, std::vector<Reader*>{}; }
    std::int64_t runs = 0;
  };
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t kept : {1, 2, 3, 5, 8}) {
    Count count;
    Replay replay(model, state, ids, 0, {.watch = &count, .kept_bytes = kept * once});
    const Tensor<float, 3> result = rollout(model, replay, kTokens, rows);
    EXPECT_TRUE(same_bits(all_of(expected), all_of(result))) << kept;
    EXPECT_LE(count.runs, before) << "more memory, more work";
    before = count.runs;
  }
  EXPECT_EQ(before, 8 + 9);  // each layer once for its output, once for its weights
  EXPECT_EQ(before, Replay::layers_run(model.config(), kTokens));
  EXPECT_THROW(Replay(model, state, std::span(ids).first(9), 0, {}), Error);
}

TEST_F(ModelReading, RolloutNeedsTheState) {
  ReadingRequest request;
  request.statistics = {Statistic::rollout};
  ReadingTap tap(model_, request, ids_);
  State state(model_.config());
  FeedOptions options;
  options.tap = &tap;
  feed(model_, state, ids_, 0, options);
  EXPECT_THROW(tap.finish(), Error);
}

TEST_F(ModelReading, RolloutNeedsEveryRow) {
  State state(model_.config());
  feed(model_, state, std::span(ids_).first(5));
  QueriesTap tap(model_);
  FeedOptions options;
  options.tap = &tap;
  feed(model_, state, std::span(ids_).subspan(5), 0, options);
  const std::int64_t rows[] = {9};
  EXPECT_THROW(rollout(tap, state.cache, rows), Error);
}

}  // namespace
}  // namespace regard
