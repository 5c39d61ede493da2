// What SmolLM2-135M-Instruct and Gemma 3 270M read, against float64 values that the public implementation gave on the
// stored weights (tests/data/goldens). Law 1: at most twice as far from them as a plain float32 evaluation of the whole
// model (plain_f32_*.json, made by plain_f32.py beside them), worst over a file's prompts and layers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "model/forward.h"
#include "reading/reading_tap.h"
#include "reading/sink.h"
#include "support/goldens.h"

namespace regard {
namespace {

using Json = nlohmann::json;

const char* const kQuantities[] = {"pattern_last_row", "pattern_row_entropy", "pattern_column_sum"};

Reading read(const Model& model, const std::vector<std::int32_t>& ids, const std::vector<std::int64_t>& layers) {
  ReadingRequest request;
  request.layers = layers;
  request.statistics = {Statistic::weights, Statistic::entropy, Statistic::column_sum};
  ReadingTap tap(model, request, ids);
  State state(model.config());
  FeedOptions options;
  options.tap = &tap;
  feed(model, state, ids, 0, options);
  return tap.finish();
}

// Largest error of each quantity over the prompts of a file, and that of plain f32.
void compare(const Model& model, const Json& prompts, const Json& plain) {
  std::map<std::string, double> error, yardstick;
  for (const Json& prompt : prompts) {
    std::vector<std::int64_t> layers;
    for (const auto& [layer, unused] : prompt["pattern_last_row"].items()) layers.push_back(std::stoll(layer));
    ASSERT_FALSE(layers.empty());
    const Reading r = read(model, prompt["ids"].get<std::vector<std::int32_t>>(), layers);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      for (const char* quantity : kQuantities) {
        const std::string layer = std::to_string(layers[l]);
        const Json& expected = prompt[quantity][layer];
        ASSERT_EQ(std::ssize(expected), model.config().heads);
        double& worst = error[quantity];
        for (std::int64_t h = 0; h < std::ssize(expected); ++h) {
          ASSERT_EQ(std::ssize(expected[h]), r.tokens);
          for (std::int64_t t = 0; t < r.tokens; ++t) {
            const float got = quantity == kQuantities[0]   ? r.weights(l, h, 0, t)
                              : quantity == kQuantities[1] ? r.per_row.at(Statistic::entropy)(l, h, t)
                                                           : r.column_sum(l, h, t);
            worst = std::max(worst, std::fabs(got - expected[h][t].get<double>()));
          }
        }
        const double of_plain = plain[prompt["name"].get<std::string>()][quantity][layer];
        yardstick[quantity] = std::max(yardstick[quantity], of_plain);
      }
    }
  }
  for (const char* quantity : kQuantities) {
    EXPECT_LE(error[quantity], 2 * yardstick[quantity]) << quantity;
    std::printf("%-20s %.2e (plain f32 %.2e)\n", quantity, error[quantity], yardstick[quantity]);
  }
}

using ReadingGolden = testing::GoldenTest;

TEST_P(ReadingGolden, Prompts) { compare(model(), prompts(), plain_f32()); }
TEST_P(ReadingGolden, LongPrompt) { compare(model(), long_prompts(), plain_f32()); }

// The first position is the sink of both (as of most models, Gu 2410.10781), in short texts and in long ones.
TEST_P(ReadingGolden, TheSinkIsTheFirstPosition) {
  for (const Json& text : {prompts()[0], long_prompts()[0]}) {
    const auto ids = text["ids"].get<std::vector<std::int32_t>>();
    const Reading whole = read(model(), ids, {});
    const std::optional<AttentionSink> sink =
        find_sink(whole.column_sum.view(), model().config(), whole.request.layers);
    ASSERT_TRUE(sink.has_value());
    EXPECT_EQ(sink->position, 0);
    std::printf("%zu tokens: %.0f %% of the heads, %.0f %% of their reading\n", ids.size(), 100 * sink->share,
                100 * sink->mass);
  }
}

INSTANTIATE_TEST_SUITE_P(Real, ReadingGolden, testing::golden_models());

}  // namespace
}  // namespace regard
