// What a pass refuses, sites' names, what writing at a site does, sampling.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "model/sampling.h"
#include "support/targets.h"
#include "support/tiny_model.h"
#include "tensor/error.h"

namespace regard {
namespace {

template <typename Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.message;
  }
  return "no error";
}

class Passes : public ::testing::Test {
 protected:
  Passes() : file_({.context = 32}), model_(Model::load(file_.path())) {}
  std::string refusal(std::vector<Row> rows) {
    return message_of([&] {
      State state(model_.config(), 2);
      Tensor<float, 2> resid({std::ssize(rows), model_.config().width});
      forward(model_, state, rows, resid.view());
    });
  }
  testing::TinyModelFile file_;
  Model model_;
};

TEST_F(Passes, RefusesIdsOutOfRange) {
  EXPECT_NE(refusal({{-1, 0, 0}}).find("token id -1"), std::string::npos);
  EXPECT_NE(refusal({{static_cast<std::int32_t>(model_.config().vocabulary), 0, 0}}).find("outside"),
            std::string::npos);
}
TEST_F(Passes, RefusesRowsThatDoNotContinue) {
  EXPECT_NE(refusal({{1, 0, 1}}).find("does not continue"), std::string::npos);
  EXPECT_NE(refusal({{1, 0, 0}, {1, 0, 0}}).find("does not continue"), std::string::npos);
  EXPECT_NE(refusal({{1, 2, 0}}).find("sequence 2"), std::string::npos);
}
TEST_F(Passes, RefusesMoreThanTheContext) {
  State state(model_.config());
  const auto ids = testing::some_ids(33, 100);
  EXPECT_NE(message_of([&] { feed(model_, state, ids); }).find("context of 32"), std::string::npos);
  EXPECT_EQ(state.cache.length(0), 0) << "said before any work";
  feed(model_, state, std::span(ids).first(32));
  EXPECT_NE(message_of([&] { feed(model_, state, std::span(ids).first(1)); }).find("33 tokens"), std::string::npos);
}
TEST_F(Passes, NoTokensIsNoWork) {
  State state(model_.config());
  EXPECT_EQ(feed(model_, state, {}).size(), 0);
  EXPECT_EQ(state.cache.length(0), 0);
}
TEST_F(Passes, AFailedPassLeavesTheStateUsable) {
  State state(model_.config()), clean(model_.config());
  const auto ids = testing::some_ids(10, 100);
  EXPECT_THROW(feed(model_, state, std::vector<std::int32_t>{1, 100000}), Error);
  EXPECT_EQ(state.cache.length(0), 0);
  EXPECT_TRUE(
      testing::same_bits(testing::all_logits(model_, state, ids, 512), testing::all_logits(model_, clean, ids, 512)));
}

// What a tap writes at a site is what the next step reads.
class ZeroAttention : public Tap {
 public:
  bool wants(Site site, std::int64_t layer) const override { return site == Site::attn_out && layer == 0; }
  void at(Site, std::int64_t, std::span<const Row>, View<float, 3> value) override {
    for (std::int64_t r = 0; r < value.shape[0]; ++r)
      for (std::int64_t c = 0; c < value.shape[2]; ++c) value(r, 0, c) = 0;
  }
};
class KeepMid : public ZeroAttention {
 public:
  bool wants(Site site, std::int64_t layer) const override {
    return ZeroAttention::wants(site, layer) || (layer == 0 && (site == Site::resid_pre || site == Site::resid_mid));
  }
  void at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) override {
    if (site == Site::attn_out) return ZeroAttention::at(site, layer, rows, value);
    auto& kept = site == Site::resid_pre ? pre : mid;
    kept.assign(value.data, value.data + value.size());
  }
  std::vector<float> pre, mid;
};
TEST_F(Passes, WritesReachTheNextStep) {
  State state(model_.config());
  KeepMid tap;
  testing::all_logits(model_, state, testing::some_ids(9, 100), 512, 0, &tap);
  EXPECT_FALSE(tap.pre.empty());
  EXPECT_EQ(tap.pre, tap.mid);
}

// An edge blocked in the score is a key that is not there: the last row's answer equals that of a text without the
// reading.
class BlockFirstKey : public Tap {
 public:
  std::span<const EdgeEdit> edges(std::int64_t, std::span<const Row> rows) override {
    edits_.clear();
    for (std::int64_t r = 0; r < std::ssize(rows); ++r)
      for (std::int32_t h = 0; h < 4; ++h)
        if (rows[r].position > 0) edits_.push_back({r, h, 0, 1});
    return edits_;
  }

 private:
  std::vector<EdgeEdit> edits_;
};
TEST_F(Passes, EdgesReachTheScores) {
  State state(model_.config()), edited(model_.config());
  const auto ids = testing::some_ids(9, 100);
  BlockFirstKey tap;
  const auto clean = testing::all_logits(model_, state, ids, 512);
  const auto changed = testing::all_logits(model_, edited, ids, 512, 0, &tap);
  const std::int64_t V = model_.config().vocabulary;
  EXPECT_TRUE(testing::same_bits(std::span<const float>(clean).first(V), std::span<const float>(changed).first(V)));
  EXPECT_FALSE(testing::same_bits(clean, changed));
  // The first token cannot be seen by anybody: another one there changes no later row.
  auto other = ids;
  other[0] = (ids[0] + 1) % 100;
  State again(model_.config());
  const auto same = testing::all_logits(model_, again, other, 512, 0, &tap);
  EXPECT_TRUE(testing::same_bits(std::span<const float>(changed).subspan(V), std::span<const float>(same).subspan(V)));
}

TEST(Sites, NamesGoBothWays) {
  for (int i = 0; i <= static_cast<int>(Site::resid_post); ++i) {
    const Site site = static_cast<Site>(i);
    EXPECT_EQ(parse_site(name(site)).site, site);
    EXPECT_EQ(parse_site(name(site)).layer, -1);
    EXPECT_EQ(parse_site(full_name(site, 12)).site, site);
    EXPECT_EQ(parse_site(full_name(site, 12)).layer, 12);
  }
  EXPECT_EQ(full_name(Site::pattern, 3), "blocks.3.attn.pattern");
  for (const char* wrong :
       {"", "blocks", "blocks.", "blocks.x.z", "blocks.1", "blocks.1.", "blocks.-1.z", "resid", "Z"})
    EXPECT_NE(message_of([&] { parse_site(wrong); }), "no error") << wrong;
}

TEST(Sampling, GreedyTakesTheHighestAndTheLowestIdAmongEquals) {
  const float logits[] = {1, 3, 3, -INFINITY, NAN};
  EXPECT_EQ(sample(logits, 5, {}, 0), 1);
  EXPECT_EQ(sample(logits, 5, {.temperature = 5, .top_k = 1}, 7), 1);
  const float all_nan[] = {NAN, NAN};
  EXPECT_NE(message_of([&] { sample(all_nan, 2, {}, 0); }), "no error");
}
TEST(Sampling, FollowsTheDistribution) {
  const float logits[] = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  const int n = 20000;
  const auto counts = [&](SamplingOptions options) {
    std::vector<int> count(3, 0);
    for (int step = 0; step < n; ++step) ++count[sample(logits, 3, options, static_cast<std::uint64_t>(step))];
    return count;
  };
  const double five_sigma = 5 * std::sqrt(0.25 * n);
  const auto plain = counts({.temperature = 1, .seed = 3});
  EXPECT_NEAR(plain[0], 0.5 * n, five_sigma);
  EXPECT_NEAR(plain[1], 0.3 * n, five_sigma);
  EXPECT_NEAR(plain[2], 0.2 * n, five_sigma);
  const auto hot = counts({.temperature = 2, .seed = 3});
  EXPECT_LT(hot[0], plain[0]);
  EXPECT_EQ(counts({.temperature = 1, .top_k = 2})[2], 0);
  EXPECT_EQ(counts({.temperature = 1, .top_p = 0.75})[2], 0);
  EXPECT_EQ(counts({.temperature = 1, .top_p = 0.5})[1], 0);
  EXPECT_EQ(counts({.temperature = 1, .min_p = 0.5})[2], 0);
  EXPECT_GT(counts({.temperature = 1, .min_p = 0.5})[1], 0);
}
TEST(Sampling, ADrawDependsOnSeedAndStepOnly) {
  const auto logits = testing::Numbers(1).vector(100, 5);
  for (std::uint64_t step = 0; step < 50; ++step)
    EXPECT_EQ(sample(logits.data(), 100, {.temperature = 1, .seed = 9}, step),
              sample(logits.data(), 100, {.temperature = 1, .seed = 9}, step));
}
// Of a large vocabulary only what a draw looks at is ranked. Here: no rank missing or twice, the best first, and the
// tail within reach.
TEST(Sampling, ALargeVocabularyIsRankedAsFarAsNeeded) {
  std::vector<float> logits = testing::Numbers(2).vector(1000, 1);
  for (std::size_t i = 0; i < 500; ++i) logits[2 * i] = logits[i];  // equals
  std::vector<std::int32_t> ranked(logits.size());
  std::iota(ranked.begin(), ranked.end(), 0);
  std::stable_sort(ranked.begin(), ranked.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  for (const std::int64_t top_k : {1, 64, 65, 400, 1000, 9000}) {
    std::set<std::int32_t> drawn;
    for (std::uint64_t step = 0; step < 1200; ++step)
      drawn.insert(sample(logits.data(), 1000, {.temperature = 50, .top_k = top_k}, step));
    const auto end = ranked.begin() + std::min<std::int64_t>(top_k, 1000);
    for (const std::int32_t id : drawn) ASSERT_NE(std::find(ranked.begin(), end, id), end) << top_k;
    EXPECT_GE(10 * std::ssize(drawn), 6 * std::min<std::int64_t>(top_k, 1000));
  }
  for (const double top_p : {0.001, 0.3, 0.999}) {  // the shortest head with that mass
    double total = 0, mass = 0;
    for (const float v : logits) total += std::exp(static_cast<double>(v));
    std::size_t head = 0;
    while (mass < top_p * total) mass += std::exp(static_cast<double>(logits[ranked[head++]]));
    const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(head);
    for (std::uint64_t step = 0; step < 200; ++step) {
      const std::int32_t id = sample(logits.data(), 1000, {.temperature = 1, .top_p = top_p}, step);
      ASSERT_NE(std::find(ranked.begin(), end, id), end) << top_p;
    }
  }
}
TEST(Sampling, RefusesValuesOutOfRange) {
  for (SamplingOptions wrong :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = NAN}, SamplingOptions{.top_k = -1},
        SamplingOptions{.top_p = 0}, SamplingOptions{.top_p = 1.5}, SamplingOptions{.min_p = -0.1}})
    EXPECT_NE(message_of([&] { validate(wrong); }), "no error");
}

}  // namespace
}  // namespace regard
