// Readings by gradient beside the truth: derivatives in double, and what hiding a key really does to a head.

#include "intervention/gradient_reading.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "attention/reference.h"
#include "attention/support.h"
#include "intervention/why.h"
#include "model/forward.h"
#include "support/errors.h"
#include "support/reference_model.h"
#include "support/tiny_model.h"
#include "tensor/error.h"
#include "training/default_recipe.h"
#include "training/model_pass.h"

namespace regard {
namespace {

using testing::TinyModelFile;

// sum over rows t != s and heads of <g, z without key s - z>.
template <class Held>
std::vector<double> hidden_by_runs(test::TestProblem& made, const Tensor<float, 3>& g, const Held& held) {
  const auto [R, H, E] = g.shape();
  const std::int64_t S = made.shape.lengths[0];
  std::vector<double> effects(static_cast<std::size_t>(S));
  const auto z = held(made.problem);
  for (std::int64_t s = 0; s < S; ++s) {
    std::vector<EdgeEdit> hidden;
    for (std::int64_t r = 0; r < R; ++r)
      for (std::int64_t h = 0; h < H; ++h)
        if (made.query_rows[r].position != s) hidden.push_back({r, static_cast<std::int32_t>(h), s, s + 1});
    made.edges(hidden);
    const auto without = held(made.problem);
    made.edges({});
    for (std::int64_t i = 0; i < g.size(); ++i)
      effects[s] += double{g.data()[i]} * (double{without.data()[i]} - double{z.data()[i]});
  }
  return effects;
}

// Where the metric is linear in z, the first order is everything.
TEST(HiddenKeyEffects, AreExactForWhatIsLinearInTheHeads) {
  struct Case {
    const char* name;
    float spread;  // of the queries: 30: most rows read one key with a weight near 1
    std::int64_t window;
    std::vector<float> sinks;
    bool causal;
  };
  for (const Case& c : {Case{"causal", 1, -1, {}, true}, Case{"saturated", 30, -1, {}, true},
                        Case{"window", 1, 3, {}, true}, Case{"sinks", 1, -1, {0.5f, -2, 1, 0}, true},
                        Case{"both ways", 1, -1, {}, false}, Case{"window of one", 1, 1, {}, true}}) {
    SCOPED_TRACE(c.name);
    test::Shape shape = test::shape_of(70, 70, 4, 2, 8, 5);  // rows in two pieces
    shape.spread = c.spread;
    test::TestProblem made(shape);
    made.problem.mask.causal = c.causal;
    made.problem.mask.window_left = c.window;
    if (!c.sinks.empty()) made.sinks(c.sinks);
    Tensor<float, 3> g({70, 4, 5});
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < g.size(); ++i) g.data()[i] = normal(random);

    const std::vector<double> truth =
        hidden_by_runs(made, g, [](const Problem& problem) { return reference_attention(problem).out; });
    const std::vector<double> plain =
        hidden_by_runs(made, g, [](const Problem& problem) { return test::run(problem).out; });
    const test::Result ran = test::run(made.problem);
    std::vector<double> effects(truth.size());
    add_hidden_key_effects(made.problem, ran.softmax.view(), std::as_const(g).view(), effects);
    double error = 0, plain_error = 0, largest = 0;
    for (std::size_t s = 0; s < truth.size(); ++s) {
      error = std::max(error, std::fabs(effects[s] - truth[s]));
      plain_error = std::max(plain_error, std::fabs(plain[s] - truth[s]));
      largest = std::max(largest, std::fabs(truth[s]));
    }
    EXPECT_LE(error, 2 * plain_error) << "largest effect " << largest;
    if (c.window != 1) {
      EXPECT_GT(largest, 1);
    }
  }
}

class GradientReadings : public ::testing::Test {
 protected:
  GradientReadings() : file_({.layers = 3, .tied = false}), model_(Model::load(file_.path())) {
    for (std::int32_t t = 0; t < 10; ++t) ids_.push_back(7 * t + 3);
  }
  double metric_of(const std::vector<double>& x, const Metric& m) const {
    double sum = 0;
    for (const double v : x) sum += std::exp(v);
    const double logprob = x[m.token] - std::log(sum);
    return m.kind == MetricKind::diff    ? x[m.token] - x[m.against]
           : m.kind == MetricKind::logit ? x[m.token]
           : m.kind == MetricKind::prob  ? std::exp(logprob)
                                         : logprob;
  }
  TinyModelFile file_;
  Model model_;
  std::vector<std::int32_t> ids_;
};

TEST_F(GradientReadings, TimesInputIsTheDerivativeByScale) {
  testing::ReferenceModel<double> truth(model_.checkpoint());
  testing::ReferenceModel<float> plain(model_.checkpoint());
  const auto clean = truth.logits(ids_);
  const auto plain_clean = plain.logits(ids_);
  for (const MetricKind kind : {MetricKind::diff, MetricKind::logit, MetricKind::logprob, MetricKind::prob})
    for (const std::int64_t row : {std::int64_t{-1}, std::int64_t{6}}) {
      if (row > 0 && kind != MetricKind::diff) continue;
      const Metric metric{.kind = kind, .token = 100, .against = 42};
      const std::size_t at = row < 0 ? ids_.size() - 1 : 6;
      const GradientReading reading = read_gradients(model_, ids_, metric, row);
      // How far plain f32 is from the truth on the way there, as a share of the logits; the way back is twice as long
      // (a product by the weights and one by what came in, where there was one).
      double rounding = 0, largest = 0;
      for (std::size_t i = 0; i < clean[at].size(); ++i) {
        rounding = std::max(rounding, std::fabs(clean[at][i] - double{plain_clean[at][i]}));
        largest = std::max(largest, std::fabs(clean[at][i]));
      }
      std::vector<double> derivative(ids_.size());
      double most = 0;
      constexpr double kStep = 1e-4;  // its square is below f32's rounding
      for (std::size_t s = 0; s < ids_.size(); ++s) {
        const auto moved = [&](double factor) {
          truth.scaled_inputs = {{s, factor}};
          return metric_of(truth.logits(ids_)[at], metric);
        };
        derivative[s] = (moved(1 + kStep) - moved(1 - kStep)) / (2 * kStep);
        most = std::max(most, std::fabs(derivative[s]));
      }
      truth.scaled_inputs.clear();
      const double may = 2 * (3 * rounding / largest) * most;
      for (std::size_t s = 0; s < ids_.size(); ++s)
        EXPECT_NEAR(reading.gradient_x_input[s], derivative[s], may) << static_cast<int>(kind) << " at " << s;
      EXPECT_NEAR(reading.base, metric_of(clean[at], metric), 2 * 2 * rounding);
      for (std::size_t s = at + 1; s < ids_.size(); ++s) EXPECT_EQ(reading.gradient_x_input[s], 0) << s;
    }
}

// What training hides is what `why` hides.
TEST_F(GradientReadings, AWordHiddenInTrainingIsHiddenAsWhyHidesIt) {
  const Metric metric{.kind = MetricKind::diff, .token = 100, .against = 42};
  WhyRequest request{.ids = ids_, .contrast = {}, .metric = metric};
  request.heads = false;
  const WhyResult exact = why(model_, request);
  Batch batch;
  const std::vector<std::int32_t> nothing(ids_.size(), -1);
  const std::int64_t T = std::ssize(ids_);
  for (std::int64_t s = 1; s + 1 < T; ++s) batch.add(ids_, nothing, s);
  ModelPass pass(model_, batch.rows, Keep::everything, {}, batch.visible);
  const View<const float, 2> resid = pass.forward();
  for (std::int64_t s = 1; s + 1 < T; ++s) {
    Tensor<float, 2> said({1, model_.config().vocabulary});
    logits(model_, {&resid((s - 1) * T + T - 1, 0), {1, model_.config().width}}, said.view());
    EXPECT_EQ(double{said(0, 100)} - double{said(0, 42)} - exact.base, exact.hide_from_all[s]) << s;
  }
}

// How far first order is from what hiding does, as a share of it, when all that heads add is multiplied by `factor`.
double share_beyond_first_order(float factor) {
  const TokenizerSpec words = micro_language_tokenizer();
  const ModelConfig config = default_model_config(std::ssize(words.pieces));
  Parameters weights(Trainer(config, words, {}, 5).model().checkpoint());
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const View<float, 2> o = weights.at(fmt::format("blk.{}.attn_output.weight", l));
    for (std::int64_t i = 0; i < o.size(); ++i) o.data[i] *= factor;
  }
  const Model model(weights.checkpoint(config, words));
  const std::vector<std::int32_t> ids = {0, 5, 17, 40, 99, 7, 120, 33};
  WhyRequest request{.ids = ids, .contrast = {}, .metric = {.kind = MetricKind::diff, .token = 100, .against = 42}};
  request.heads = false;
  const WhyResult exact = why(model, request);
  const GradientReading reading = read_gradients(model, ids, request.metric, -1);
  EXPECT_EQ(reading.base, exact.base);
  EXPECT_EQ(reading.hidden.back(), 0);  // no other row reads the last
  double beyond = 0, size = 0;
  for (std::size_t s = 0; s + 1 < ids.size(); ++s) {
    beyond += std::pow(reading.hidden[s] - exact.hide_from_all[s], 2);
    size += std::pow(exact.hide_from_all[s], 2);
  }
  return std::sqrt(beyond / size);
}

// It is the first order: what is left is of the second, so heads that add a quarter leave a quarter of that share. Half
// is allowed, for the third; a wrong factor or sign would leave a share that does not shrink.
TEST(HiddenKeys, AreWhatHidingDoesToFirstOrder) {
  const double at_first = share_beyond_first_order(0.1f), at_a_quarter = share_beyond_first_order(0.025f);
  EXPECT_LT(at_a_quarter, at_first / 2);
}

TEST_F(GradientReadings, SayWhatHasNoGradient) {
  for (const MetricKind kind : {MetricKind::rank, MetricKind::kl, MetricKind::tvd, MetricKind::jsd, MetricKind::cosine})
    testing::expect_error(ErrorCode::unsupported, {"gradient"},
                          [&] { read_gradients(model_, ids_, {.kind = kind, .token = 1}, -1); });
  testing::expect_error(ErrorCode::usage, {"row"},
                        [&] { read_gradients(model_, ids_, {.kind = MetricKind::logit, .token = 1}, 10); });
}

}  // namespace
}  // namespace regard
