// all-MiniLM-L6-v2 against float64 values that the public implementation gave on the stored weights: hidden states,
// patterns, and the text as one vector. The goldens and the yardsticks are in tests/data/goldens: err32 is the public
// implementation's own float32 error, plain_f32_encoder.json that of a plain float32 evaluation (plain_f32_encoder.py
// beside it). Law 1: at most twice that.

#include <gtest/gtest.h>

#include <cmath>

#include "intervention/embedding.h"
#include "intervention/experiment.h"
#include "reading/reading_tap.h"
#include "support/goldens.h"
#include "support/models.h"

namespace regard {
namespace {

using Json = nlohmann::json;

// The largest difference of numbers that the file nests as their axes say.
double worst(const Json& expected, const std::function<double(std::int64_t, std::int64_t, std::int64_t)>& got) {
  double error = 0;
  for (std::size_t a = 0; a < expected.size(); ++a)
    for (std::size_t b = 0; b < expected[a].size(); ++b)
      for (std::size_t c = 0; c < expected[a][b].size(); ++c) {
        const double difference = std::fabs(got(a, b, c) - expected[a][b][c].get<double>());
        error = std::isnan(difference) ? difference : std::max(error, difference);
        if (std::isnan(error)) return error;
      }
  return error;
}

std::vector<double> normalised(std::vector<double> x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  for (double& v : x) v /= std::sqrt(squares);
  return x;
}

TEST(EncoderGolden, EveryNumberOfTheFile) {
  const std::filesystem::path path = testing::real_model("minilm");
  if (path.empty()) GTEST_SKIP() << "all-MiniLM-L6-v2 is not here: ./check fetches it";
  const Model model = Model::load(path);
  const Json goldens = testing::read_golden("encoder_minilm.json")["texts"];
  const Json plain = testing::read_golden("plain_f32_encoder.json");
  double pattern_yardstick = 0;  // over all texts: one text's error is a small sample
  for (const Json& text : plain)
    for (const Json& error : text["pattern"]) pattern_yardstick = std::max(pattern_yardstick, error.get<double>());

  std::vector<std::vector<double>> embeddings;
  for (const Json& text : goldens) {
    SCOPED_TRACE(text["text"].get<std::string>());
    const auto ids = text["ids"].get<std::vector<std::int32_t>>();
    EXPECT_EQ(model.tokenizer().encode_ids(text["text"].get<std::string>()), ids);
    ReadingRequest request;
    request.statistics = {Statistic::weights};
    request.resid = true;
    for (std::int64_t row = 0; row < std::ssize(ids); ++row) request.rows.push_back(row);
    ReadingTap tap(model, request, ids);
    State state(model.config(), 1, std::ssize(ids));
    feed(model, state, ids, 0, {.tap = &tap, .on_rows = {}});
    const Reading r = tap.finish();

    const double hidden = worst(text["hidden_first8"], [&](auto l, auto row, auto c) { return r.resid(l, row, c); });
    EXPECT_LE(hidden, 2 * text["err32"]["hidden_max"].get<double>());
    double pattern = 0;
    for (const auto& [layer, expected] : text["pattern"].items())
      pattern = std::max(pattern, worst(expected, [&, l = std::stoll(layer)](auto h, auto row, auto key) {
                           return r.weights(l, h, row, key);
                         }));
    EXPECT_LE(pattern, 2 * pattern_yardstick);
    embeddings.push_back(normalised(embedding_of(model, ids)));
    const double embedding = worst(Json::array({Json::array({text["embedding_mean_normalised"]})}),
                                   [&](auto, auto, auto c) { return embeddings.back()[c]; });
    EXPECT_LE(embedding, 2 * text["err32"]["embedding_max"].get<double>());
    std::printf("  %2ld tokens: hidden states %.2e, patterns %.2e, embedding %.2e\n", static_cast<long>(ids.size()),
                hidden, pattern, embedding);
  }

  // The metric, of each text with each: the product of the two vectors.
  const std::int64_t C = model.config().width;
  for (std::size_t a = 0; a < goldens.size(); ++a) {
    for (std::size_t b = 0; b < goldens.size(); ++b) {
      double expected = 0;
      for (std::int64_t c = 0; c < C; ++c)
        expected += goldens[a]["embedding_mean_normalised"][c].get<double>() *
                    goldens[b]["embedding_mean_normalised"][c].get<double>();
      const Metric metric = parse_metric("cosine " + goldens[b]["text"].get<std::string>(), model.tokenizer());
      const Experiment experiment(
          model, {.ids = goldens[a]["ids"].get<std::vector<std::int32_t>>(), .runs = {}, .edits = {}, .metric = metric},
          true);
      // Off by what the two vectors are: |x.y - x'.y'| <= |x - x'| + |y - y'|, each at most sqrt(C) times its largest
      // error; and the file's own nine digits.
      const double err32 =
          goldens[a]["err32"]["embedding_max"].get<double>() + goldens[b]["err32"]["embedding_max"].get<double>();
      EXPECT_NEAR(experiment.measure().base(), expected, 2 * std::sqrt(static_cast<double>(C)) * err32);
    }
  }
}

}  // namespace
}  // namespace regard
