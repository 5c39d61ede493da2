// What a decoder reads of its source: the reading's numbers against the weights themselves, and looking changes
// nothing.

#include <gtest/gtest.h>

#include <cmath>

#include "model/layers.h"
#include "model/source.h"
#include "model/taps.h"
#include "reading/cross_reading.h"
#include "support/errors.h"
#include "support/families.h"
#include "support/targets.h"

namespace regard {
namespace {

using testing::same_bits;

class CrossReading : public ::testing::TestWithParam<std::string> {
 protected:
  CrossReading()
      : expected_(GetParam()),
        model_(Model::load(testing::families_folder() / GetParam())),
        source_(expected_.ids("source_ids")),
        target_(expected_.ids("target_ids")),
        encoded_(encode(*model_.encoder(), source_)) {
    // Two texts of different lengths, so that the one is not taken for the other.
    target_.resize(target_.size() - 5);
  }

  // Final residuals of all rows.
  std::vector<float> run(Tap* tap, std::int64_t chunk) {
    State state(model_.config());
    set_source(model_, state, encoded_.view());
    std::vector<float> resid;
    FeedOptions options;
    options.chunk = chunk;
    options.tap = tap;
    options.on_rows = [&](std::int64_t, View<const float, 2> rows) {
      resid.insert(resid.end(), rows.data, rows.data + rows.size());
    };
    feed(model_, state, target_, 0, options);
    return resid;
  }

  CrossReadingTap tap() const {
    ReadingRequest request;
    request.rows = {0, 7, std::ssize(target_) - 1};
    request.top = 4;
    return {model_, request, std::ssize(target_), std::ssize(source_)};
  }

  testing::Expected expected_;
  Model model_;
  std::vector<std::int32_t> source_, target_;
  Tensor<float, 2> encoded_;
};

TEST_P(CrossReading, IsOfTheWeightsThatThereAre) {
  const std::int64_t S = std::ssize(source_), T = std::ssize(target_);
  const ModelConfig& c = model_.config();
  testing::Recorder recorder(model_, S, "decoder.");
  CrossReadingTap crossing = tap();
  Taps taps({&recorder, &crossing});
  run(&taps, 512);
  const auto seen = recorder.all();
  const Reading reading = crossing.finish();
  State state(c);
  set_source(model_, state, encoded_.view());
  for (std::int64_t l = 0; l < c.layers; ++l) {
    const std::vector<float>& pattern = seen.at("decoder." + std::to_string(l) + ".cross_pattern");  // [H, S, S]
    const std::vector<float>& q = seen.at("decoder." + std::to_string(l) + ".cross_q");              // [T, H, D]
    const Sequence keys = state.source->view(0, l, S);
    const Problem problem = cross_attention_problem(model_, l);
    const double scale = problem.scale ? *problem.scale : 1 / std::sqrt(static_cast<double>(c.head_dim));
    for (std::int64_t h = 0; h < c.heads; ++h) {
      std::vector<double> column(static_cast<std::size_t>(S));
      for (std::int64_t t = 0; t < T; ++t) {
        const float* p = &pattern[static_cast<std::size_t>((h * S + t) * S)];
        double entropy = 0, sum = 0, largest = 0;
        for (std::int64_t s = 0; s < S; ++s) {
          double score = 0, magnitude = 0;
          for (std::int64_t d = 0; d < c.head_dim; ++d) {
            const double product = scale * q[static_cast<std::size_t>((t * c.heads + h) * c.head_dim + d)] *
                                   reinterpret_cast<const float*>(keys.k.row(s))[h * c.head_dim + d];
            score += product;
            magnitude += std::fabs(product);
          }
          largest = std::max(largest, magnitude);
          sum += std::exp(score);
          if (p[s] > 0) entropy -= static_cast<double>(p[s]) * std::log(static_cast<double>(p[s]));
          column[static_cast<std::size_t>(s)] += p[s];
        }
        // Rounding: a dot product of D terms, a sum of S, each at most half an ulp of what is added up.
        const double bound =
            2 * static_cast<double>(S + c.head_dim) * 0x1p-24 * (1 + largest + std::fabs(std::log(sum)));
        EXPECT_NEAR(reading.per_row.at(Statistic::lse)(l, h, t), std::log(sum), bound);
        EXPECT_NEAR(reading.per_row.at(Statistic::entropy)(l, h, t), entropy, bound);
      }
      for (std::int64_t s = 0; s < S; ++s)  // summed exactly in steps of 2^-30 or finer, rounded once
        EXPECT_NEAR(reading.column_sum(l, h, s), column[static_cast<std::size_t>(s)],
                    static_cast<double>(T) * 0x1p-31 + column[static_cast<std::size_t>(s)] * 0x1p-24);
      for (std::size_t r = 0; r < reading.request.rows.size(); ++r) {
        const std::int64_t t = reading.request.rows[r];
        const float* p = &pattern[static_cast<std::size_t>((h * S + t) * S)];
        const float* read = &reading.weights(l, h, static_cast<std::int64_t>(r), 0);
        EXPECT_TRUE(same_bits(std::vector<float>(read, read + S), std::vector<float>(p, p + S)));
        std::vector<float> ordered(p, p + S);
        std::sort(ordered.begin(), ordered.end(), std::greater<>());
        for (std::int64_t i = 0; i < 4; ++i) {
          EXPECT_EQ(reading.top_weight(l, h, static_cast<std::int64_t>(r), i), ordered[static_cast<std::size_t>(i)]);
          EXPECT_EQ(p[reading.top_key(l, h, static_cast<std::int64_t>(r), i)], ordered[static_cast<std::size_t>(i)]);
        }
      }
    }
  }
}

TEST_P(CrossReading, ChangesNothingAndIsTheSameInEveryChunk) {
  const std::vector<float> unread = run(nullptr, 512);
  CrossReadingTap whole = tap();
  EXPECT_TRUE(same_bits(unread, run(&whole, 512)));
  const Reading once = whole.finish();
  for (const std::int64_t chunk : {1, 7, 64}) {
    SCOPED_TRACE(chunk);
    CrossReadingTap parts = tap();
    EXPECT_TRUE(same_bits(unread, run(&parts, chunk)));
    const Reading reading = parts.finish();
    const auto same = [](const auto& a, const auto& b) {
      const auto all = [](const auto& t) {
        return std::span<const float>(t.data(), static_cast<std::size_t>(t.size()));
      };
      return same_bits(all(a), all(b));
    };
    EXPECT_TRUE(same(once.weights, reading.weights));
    EXPECT_TRUE(same(once.column_sum, reading.column_sum));
    for (const auto& [statistic, values] : once.per_row) EXPECT_TRUE(same(values, reading.per_row.at(statistic)));
  }
}

TEST_P(CrossReading, WhatSaysNothingAcrossTextsIsRefused) {
  ReadingRequest request;
  request.statistics = {Statistic::rollout};
  testing::expect_error(ErrorCode::unsupported, {"rollout", "two texts"},
                        [&] { const CrossReadingTap refused(model_, request, 4, 5); });
}

INSTANTIATE_TEST_SUITE_P(All, CrossReading, ::testing::Values("t5", "t5_gated", "marian"),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace regard
