// What edits cause on SmolLM2-135M-Instruct and Gemma 3 270M, against float64 values that the public implementation
// gave on the stored weights (tests/data/goldens). A change of a difference of two logits may be off by four logits'
// float32 error.

#include <gtest/gtest.h>

#include <cmath>

#include "intervention/sweep.h"
#include "intervention/sweep_plan.h"
#include "intervention/why.h"
#include "support/goldens.h"

namespace regard {
namespace {

using Json = nlohmann::json;

struct Worst {
  double error = 0;
  std::int64_t compared = 0;
  void take(double got, const Json& expected) {
    if (expected.is_null()) {
      EXPECT_TRUE(std::isnan(got)) << got;
      return;
    }
    ASSERT_FALSE(std::isnan(got));
    error = std::max(error, std::fabs(got - expected.get<double>()));
    ++compared;
  }
};

void compare(const std::string& what, const Worst& worst, std::int64_t count, double allowed) {
  EXPECT_EQ(worst.compared, count) << what;
  EXPECT_LE(worst.error, allowed) << what;
  std::printf("  %-48s %5ld numbers, error %.2e (allowed %.2e)\n", what.c_str(), static_cast<long>(worst.compared),
              worst.error, allowed);
}

using InterventionGolden = testing::GoldenTest;

TEST_P(InterventionGolden, EveryNumberOfTheFile) {
  const Model& model = this->model();
  const std::int64_t L = model.config().layers, H = model.config().heads;
  int compared = 0;
  for (const Json& prompt : prompts()) {
    if (!prompt.contains("pair")) continue;
    ++compared;
    std::printf("%s\n", prompt["name"].get<std::string>().c_str());
    const double allowed = 4 * prompt["err32"]["logits_last_max"].get<double>();
    WhyRequest request{.ids = prompt["ids"].get<std::vector<std::int32_t>>(),
                       .contrast = prompt.value("corrupt_ids", std::vector<std::int32_t>()),
                       .metric = {MetricKind::diff, prompt["pair"][0], prompt["pair"][1]}};
    const WhyResult result = why(model, request);
    const std::int64_t T = std::ssize(request.ids);
    EXPECT_LE(std::fabs(result.base - prompt["logit_difference"].get<double>()), allowed);

    Worst heads, last, all;
    for (std::int64_t l = 0; l < L; ++l)
      for (std::int64_t h = 0; h < H; ++h) heads.take(result.zero_z(l, h), prompt["zero_head_z_all_rows"][l][h]);
    for (std::int64_t s = 0; s < T; ++s) {
      last.take(result.hide_from_last[s], prompt["block_edge_last_row_to_key_all_layers_heads"][s]);
      all.take(result.hide_from_all[s], prompt["block_key_from_all_later_rows_all_layers_heads"][s]);
    }
    compare("zero z, all rows", heads, L * H, allowed);
    compare("hidden from the last row", last, T - 1, allowed);
    compare("hidden from all later rows", all, T, allowed);
    if (request.contrast.empty()) continue;

    EXPECT_LE(std::fabs(*result.contrast - prompt["corrupt_logit_difference"].get<double>()), allowed);
    Worst keys, values, both, z;
    for (std::int64_t s = 0; s < T; ++s) {
      keys.take(result.keys_only[s], prompt["keys_from_corrupt_at_position_all_layers"][s]);
      values.take(result.values_only[s], prompt["values_from_corrupt_at_position_all_layers"][s]);
      both.take(result.both[s], prompt["both_from_corrupt_at_position_all_layers"][s]);
    }
    compare("keys from the contrast", keys, T, allowed);
    compare("values from the contrast", values, T, allowed);
    compare("both from the contrast", both, T, allowed);

    const Edit edit = parse_edit("patch z from=contrast row=-1");
    const Experiment experiment(model,
                                {.ids = request.ids,
                                 .runs = {{"contrast", request.contrast}},
                                 .edits = {edit},
                                 .metric = request.metric,
                                 .sites = Sweep::sites()},
                                true);
    const SweepPlan plan({edit}, "layer,head", model.config(), experiment.runs());
    Sweep sweep(model, experiment.clean(), experiment.measure(), {});
    sweep.run(
        plan.count(), [&](std::int64_t i) { return plan.cells(i); },
        [&](const WhatIfResult& one) {
          z.take(one.value - result.base, prompt["z_from_corrupt_last_row"][one.index / H][one.index % H]);
        });
    compare("z from the contrast, last row", z, L * H, allowed);
  }
  EXPECT_EQ(compared, 3);
}

INSTANTIATE_TEST_SUITE_P(Real, InterventionGolden, testing::golden_models());

}  // namespace
}  // namespace regard
