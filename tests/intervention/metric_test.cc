// Metrics by their formulas, in float64, and the texts that name them.

#include "intervention/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/targets.h"
#include "support/tiny_model.h"
#include "tensor/error.h"

namespace regard {
namespace {

class MetricTest : public ::testing::Test {
 protected:
  MetricTest() : model_(Model::load(file_.path())), V_(model_.config().vocabulary) {
    testing::Numbers numbers(3);
    resid_ = Tensor<float, 2>({5, model_.config().width});
    for (std::int64_t i = 0; i < resid_.size(); ++i) resid_.data()[i] = numbers.next(2);
    logits_ = Tensor<float, 2>({5, V_});
    logits(model_, resid_.view(), logits_.view());
  }
  // In float64: log-probabilities of a row.
  std::vector<double> logprob(std::int64_t r) const {
    double max = -INFINITY, sum = 0;
    for (std::int64_t i = 0; i < V_; ++i) max = std::max<double>(max, logits_(r, i));
    for (std::int64_t i = 0; i < V_; ++i) sum += std::exp(logits_(r, i) - max);
    std::vector<double> lp;
    for (std::int64_t i = 0; i < V_; ++i) lp.push_back(logits_(r, i) - max - std::log(sum));
    return lp;
  }
  Measure measure(Metric metric) const { return Measure(model_, metric, resid_.view(), 0); }

  testing::TinyModelFile file_;
  Model model_;
  std::int64_t V_;
  Tensor<float, 2> resid_, logits_;
};

TEST_F(MetricTest, OfSomeLogitsHasTheBitsOfAll) {
  const std::int32_t tokens[] = {7, 0, 258};
  Tensor<float, 2> some({5, 3});
  logits_of(model_, resid_.view(), tokens, some.view());
  for (std::int64_t r = 0; r < 5; ++r)
    for (int t = 0; t < 3; ++t) EXPECT_EQ(some(r, t), logits_(r, tokens[t]));
}

TEST_F(MetricTest, ByTheirFormulas) {
  const std::vector<double> p = logprob(0);
  for (std::int64_t r = 0; r < 5; ++r) {
    const auto value = [&](MetricKind kind) { return measure({kind, 65, 66}).of(resid_.view().slice(r, r + 1))[0]; };
    const std::vector<double> q = logprob(r);
    double kl = 0, tvd = 0, jsd = 0, rank = 0, size = 0;
    for (std::int64_t i = 0; i < V_; ++i) {
      const double a = std::exp(p[i]), b = std::exp(q[i]), m = (a + b) / 2;
      kl += a * (p[i] - q[i]);
      tvd += std::fabs(a - b) / 2;
      jsd += (a * std::log(a / m) + b * std::log(b / m)) / 2;
      rank += q[i] > q[65];
      size += a * (std::fabs(p[i]) + std::fabs(q[i]));
    }
    // Each f32 logarithm of a probability is within 2 ulp, as is each probability.
    const double ulp = std::ldexp(1.0, -22);
    EXPECT_EQ(value(MetricKind::logit), logits_(r, 65));
    EXPECT_EQ(value(MetricKind::diff), static_cast<double>(logits_(r, 65)) - static_cast<double>(logits_(r, 66)));
    EXPECT_NEAR(value(MetricKind::logprob), q[65], 2 * ulp * std::fabs(q[65]));
    EXPECT_NEAR(value(MetricKind::prob), std::exp(q[65]), 2 * ulp * (1 + std::fabs(q[65])) * std::exp(q[65]));
    EXPECT_EQ(value(MetricKind::rank), rank);
    EXPECT_NEAR(value(MetricKind::kl), kl, 2 * ulp * size);
    EXPECT_NEAR(value(MetricKind::tvd), tvd, 2 * ulp * (2 + size));
    EXPECT_NEAR(value(MetricKind::jsd), jsd, 2 * ulp * (2 + size));
    EXPECT_LE(value(MetricKind::jsd), std::log(2.0));
  }
}

TEST_F(MetricTest, OfTheCleanRunItselfIsExactlyTheBase) {
  for (const MetricKind kind : {MetricKind::kl, MetricKind::tvd, MetricKind::jsd})
    EXPECT_EQ(measure({kind}).base(), 0.0);
  const Measure first = measure({MetricKind::prob});
  EXPECT_EQ(measure({MetricKind::rank}).base(), 0.0);
  EXPECT_EQ(first.of(resid_.view().slice(0, 1))[0], first.base());
}

TEST_F(MetricTest, WithoutTokensTakesTheFirstAndTheSecondChoice) {
  const Metric metric = measure({MetricKind::diff}).metric();
  for (std::int64_t i = 0; i < V_; ++i) {
    EXPECT_LE(logits_(0, i), logits_(0, metric.token));
    if (i != metric.token) {
      EXPECT_LE(logits_(0, i), logits_(0, metric.against));
    }
  }
}

TEST_F(MetricTest, IsNamedByText) {
  const Tokenizer& t = model_.tokenizer();
  const auto is = [&](std::string_view text, MetricKind kind, std::int32_t token, std::int32_t against) {
    const Metric metric = parse_metric(text, t);
    EXPECT_EQ(metric.kind, kind) << text;
    EXPECT_EQ(metric.token, token) << text;
    EXPECT_EQ(metric.against, against) << text;
  };
  is("logit 65", MetricKind::logit, 65, -1);
  is("diff 'A' \"B\"", MetricKind::diff, 'A', 'B');
  is("diff ' ' '''", MetricKind::diff, ' ', '\'');
  is("logprob '5'", MetricKind::logprob, '5', -1);
  is("prob hel", MetricKind::prob, 257, -1);
  is("rank", MetricKind::rank, -1, -1);
  is("kl", MetricKind::kl, -1, -1);
}

TEST_F(MetricTest, RefusesByName) {
  const auto refused = [&](std::string_view text, std::string_view says) {
    try {
      parse_metric(text, model_.tokenizer());
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::usage);
      EXPECT_NE((error.message + ": " + error.hint).find(says), std::string::npos)
          << error.message << ": " << error.hint;
    }
  };
  refused("", "metrics are");
  refused("loss", "metrics are");
  refused("logit", "takes 1 token");
  refused("kl 5", "takes 0 tokens");
  refused("diff 5", "takes 2 tokens");
  refused("logit 'hello'", "not one token but 2");
  refused("logit 'hello'", "'hel' (257)");
  refused("logit ''", "not one token but 0");
  refused("logit 'A", "not closed");
  refused("logit 999", "there is no token 999");
}

}  // namespace
}  // namespace regard
