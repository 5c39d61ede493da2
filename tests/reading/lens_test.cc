// The logit lens and direct logit attribution: both must end at the logits themselves.

#include "reading/lens.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/forward.h"
#include "reading/direct_effects.h"
#include "reading/reading_tap.h"
#include "support/targets.h"
#include "support/tiny_model.h"
#include "tensor/error.h"

namespace regard {
namespace {

class Lens : public ::testing::Test {
 protected:
  Lens() : file_({.layers = 3, .biases = true}), model_(Model::load(file_.path())) {
    ids_ = testing::some_ids(30, model_.config().vocabulary);
    State state(model_.config());
    logits_ = testing::all_logits(model_, state, ids_, 512);
  }
  float logit(std::int64_t row, std::int64_t id) const { return logits_[row * model_.config().vocabulary + id]; }
  void run(Tap& tap) const {
    State state(model_.config());
    FeedOptions options;
    options.chunk = 7;
    options.tap = &tap;
    feed(model_, state, ids_, 0, options);
  }
  testing::TinyModelFile file_;
  Model model_;
  std::vector<std::int32_t> ids_;
  std::vector<float> logits_;
};

TEST_F(Lens, AtTheLastLayerItIsTheLogits) {
  ReadingRequest request;
  request.statistics = {};
  request.resid = true;
  request.rows = {-1, 4};
  ReadingTap tap(model_, request, ids_);
  run(tap);
  const Reading reading = tap.finish();
  const std::int64_t V = model_.config().vocabulary;
  const auto lens = logit_lens(model_, reading.resid.view(), V);
  ASSERT_EQ(std::ssize(lens), 4);
  const std::int64_t rows[] = {29, 4};
  for (int r = 0; r < 2; ++r) {
    const std::vector<Guess>& top = lens[3][r].top;
    ASSERT_EQ(std::ssize(top), V);
    double sum = 0;
    for (std::size_t i = 0; i < top.size(); ++i) {
      const Guess& guess = top[i];
      EXPECT_EQ(guess.logit, logit(rows[r], guess.id));
      if (i > 0) {
        EXPECT_GE(top[i - 1].logit, guess.logit);
      }
      sum += std::exp(static_cast<double>(guess.logprob));
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_NE(lens[0][r].top[0].logit, top[0].logit);
    // The final choice is followed through all layers.
    EXPECT_EQ(lens[3][r].rank, 0);
    for (int l = 0; l < 4; ++l) {
      EXPECT_EQ(lens[l][r].final.id, top[0].id);
      EXPECT_EQ(lens[l][r].top[lens[l][r].rank].id, top[0].id);
      EXPECT_EQ(lens[l][r].top[lens[l][r].rank].logit, lens[l][r].final.logit);
      EXPECT_EQ(lens[l][r].top[lens[l][r].rank].logprob, lens[l][r].final.logprob);
    }
  }
  EXPECT_EQ(logit_lens(model_, reading.resid.view(), 3)[3][0].top.size(), 3u);
  EXPECT_THROW(logit_lens(model_, reading.resid.view(), 0), Error);
}

TEST_F(Lens, DirectEffectsAddUpToTheLogitDifference) {
  DirectEffectsTap tap(model_, {29, 4});
  run(tap);
  const std::int64_t rows[] = {29, 4}, C = model_.config().width;
  for (const auto& [a, b] : {std::pair{5, 77}, {200, 3}}) {
    const DirectEffects pair = tap.effects(a, b), single = tap.effects(a), other = tap.effects(b);
    for (int r = 0; r < 2; ++r) {
      // The logits are f32 sums of C products, the residual of 2 L + 1 parts; relative to what is added up.
      double parts = std::fabs(pair.embedding(r));
      for (std::int64_t l = 0; l < 3; ++l) parts += std::fabs(pair.attention(l, r)) + std::fabs(pair.mlp(l, r));
      const double allowed = (parts + std::fabs(logit(rows[r], a)) + std::fabs(logit(rows[r], b))) * C * 0x1p-24;
      EXPECT_NEAR(pair.total(r), static_cast<double>(logit(rows[r], a)) - logit(rows[r], b), allowed);
      EXPECT_NEAR(pair.total(r), single.total(r) - other.total(r), 1e-12 * parts);
    }
  }
}

TEST_F(Lens, EachRowMayHaveATokenOfItsOwn) {
  DirectEffectsTap tap(model_, {29, 4, 11});
  run(tap);
  const std::int32_t tokens[] = {5, 77, 5};
  const DirectEffects own = tap.effects(tokens), first = tap.effects(5), second = tap.effects(77);
  for (int r = 0; r < 3; ++r) {
    const DirectEffects& same = r == 1 ? second : first;
    EXPECT_EQ(own.total(r), same.total(r));
    EXPECT_EQ(own.heads(2, 1, r), same.heads(2, 1, r));
    EXPECT_EQ(own.mlp(0, r), same.mlp(0, r));
  }
  EXPECT_THROW(tap.effects(std::span(tokens).first(2)), Error);
}

TEST_F(Lens, HeadsAndBiasAddUpToTheirLayersAttention) {
  DirectEffectsTap tap(model_, {29});
  run(tap);
  const DirectEffects e = tap.effects(9, 10);
  const ModelConfig& c = model_.config();
  for (std::int64_t l = 0; l < c.layers; ++l) {
    double sum = e.attention_bias(l, 0), parts = std::fabs(sum);
    EXPECT_NE(sum, 0);
    for (std::int64_t h = 0; h < c.heads; ++h) sum += e.heads(l, h, 0), parts += std::fabs(e.heads(l, h, 0));
    // attn_out is an f32 sum of H E products of z and W_O, seen along one direction.
    EXPECT_NEAR(sum, e.attention(l, 0), (parts + std::fabs(e.attention(l, 0))) * c.heads * c.value_dim * 0x1p-24);
    EXPECT_GT(parts, 0);
  }
}

TEST_F(Lens, DirectEffectsSayWhatIsWrong) {
  DirectEffectsTap tap(model_, {29});
  EXPECT_THROW(tap.effects(1), Error);  // nothing passed yet
  run(tap);
  EXPECT_THROW(tap.effects(-1), Error);
  EXPECT_THROW(tap.effects(1, 100000), Error);
}

}  // namespace
}  // namespace regard
