// The truth benchmark's sums, and that its methods are the library's.

#include "truth.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "intervention/experiment.h"
#include "intervention/row_readings.h"
#include "support/temp_folder.h"
#include "support/variable.h"
#include "training/trainer.h"
#include "weights/default_model.h"

namespace regard::bench {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kEach = 2;  // instrumented, a sentence takes a second
#else
constexpr std::int64_t kEach = 10;
#endif

TEST(TruthScores, ArePlacesAmongThoseRanked) {
  //                         <s> 1  2  3  4  last
  const std::vector<double> scores = {9, 1, 4, 3, 2, 8};
  const auto expect = [](const TruthScore& score, double cause, double either, double reciprocal) {
    EXPECT_EQ(score.cause, cause);
    EXPECT_EQ(score.either, either);
    EXPECT_EQ(score.reciprocal, reciprocal);
  };
  expect(truth_score(scores, 2, -1), 1, 1, 1);
  expect(truth_score(scores, 3, 2), 0, 1, 1.0 / 2);
  expect(truth_score(scores, 3, 4), 0, 0, 1.0 / 2);
  expect(truth_score(scores, 1, -1), 0, 0, 1.0 / 4);
  expect(truth_score(std::vector<double>{0, 5, 5, 0}, 1, -1), 0, 0, 1.0 / 2);  // equal ones stand before it
  expect(truth_score(std::vector<double>{0, 5, std::nan(""), 0}, 1, -1), 0, 0, 1.0 / 2);
}

TEST(TruthScores, OfARandomOrderAreTheMeanOfAllOrders) {
  std::vector<double> scores = {0, 1, 2, 3, 4, 0};
  for (const bool carrier : {false, true}) {
    TruthScore sum;
    double orders = 0;
    do {
      sum += truth_score(scores, 2, carrier ? 3 : -1);
      ++orders;
    } while (std::next_permutation(scores.begin() + 1, scores.end() - 1));
    const TruthScore expected = random_truth_score(6, carrier);
    EXPECT_EQ(orders, 24);
    EXPECT_NEAR(sum.cause / orders, expected.cause, 1e-15);
    EXPECT_NEAR(sum.either / orders, expected.either, 1e-15);
    EXPECT_NEAR(sum.reciprocal / orders, expected.reciprocal, 1e-15);
  }
}

class TruthBench : public ::testing::Test {
 protected:
  TruthBench()
      : trainer_(default_model_config(std::ssize(micro_language_tokenizer().pieces)), micro_language_tokenizer(), {},
                 5),
        model_(trainer_.model()) {}
  Trainer trainer_;
  Model model_;
};

TEST_F(TruthBench, TakesItsMethodsFromTheLibrary) {
  const Question asked = question(model_.tokenizer(), sentence(SentenceKind::lookup, Language::chinese, 3, true));
  const std::vector<std::vector<double>> scores = truth_scores(model_, asked);
  const std::vector<TruthMethod> methods = truth_methods();
  ASSERT_EQ(scores.size() + 1, methods.size());
  const std::int64_t T = std::ssize(asked.prompt);
  const auto of = [&](const std::string& name) {
    for (std::size_t m = 0; m < scores.size(); ++m)
      if (methods[m].name == name) return scores[m];
    ADD_FAILURE() << name;
    return std::vector<double>(static_cast<std::size_t>(T));
  };
  const Metric metric{.kind = MetricKind::diff, .token = asked.answer, .against = asked.otherwise};
  const auto effect = [&](const std::string& edit) {
    const Experiment experiment(
        model_, {.ids = asked.prompt, .runs = {}, .edits = {parse_edit(edit)}, .metric = metric}, false);
    const PatchResult result = patch(experiment);
    return result.base - result.edited;
  };
  for (std::int64_t s = 1; s + 1 < T; ++s) {
    EXPECT_EQ(of("hide_from_all")[s], effect(fmt::format("block edge row={}: key={}", s + 1, s)));
    EXPECT_EQ(of("hide_from_all_size")[s], std::fabs(of("hide_from_all")[s]));
    EXPECT_EQ(of("hide_from_last")[s], effect(fmt::format("block edge row=-1 key={}", s)));
    EXPECT_EQ(of("values_only")[s], effect(fmt::format("zero v key={}", s)));
  }
  // Four of the screen, as they are without one.
  std::int64_t confirmed = 0;
  for (std::int64_t s = 0; s + 1 < T; ++s) {
    if (!std::isfinite(of("screened")[s])) continue;
    EXPECT_EQ(of("screened")[s], of("hide_from_all")[s]);
    ++confirmed;
  }
  EXPECT_EQ(confirmed, 4);
  const RowReadings readings = read_row(model_, asked.prompt, T - 1);
  EXPECT_EQ(of("attention_mean"), readings.attention);
  EXPECT_EQ(of("rollout"), readings.rollout);
  EXPECT_EQ(of("norm_weighted"), readings.norm_weighted);
  double last = 0;
  for (std::int64_t s = 0; s < T; ++s) {
    last += of("attention_last_layer")[s];
    EXPECT_GE(of("attention_max")[s], of("attention_mean")[s]);
    EXPECT_GE(of("attention_max")[s], of("attention_last_layer")[s]);
  }
  EXPECT_NEAR(last, 1, static_cast<double>(T) * 0x1p-24);  // weights, each rounded to f32
}

// Of the model inside the program, what is said in docs/truth.md, on some of its sentences.
TEST_F(TruthBench, HidingNamesTheCausesOfTheDefaultModel) {
  const testing::TempFolder home;
  const testing::Variable variable("REGARD_HOME", home.path());
  const TruthTable table = truth(Model::load(default_model_folder()), kEach);
  const TruthGroup all = table.sum({});
  EXPECT_EQ(all.answered, 10 * kEach);
  EXPECT_EQ(table.methods.front().name, "hide_from_all");
  EXPECT_EQ(all.scores.front().either, 10 * kEach);
}

TEST_F(TruthBench, CountsEverySentence) {
  // Nearly all are answered wrongly: this model has learnt nothing.
  const TruthTable table = truth(model_, 3);
  ASSERT_EQ(table.groups.size(), 10u);
  std::int64_t answered = 0;
  for (std::size_t g = 0; g < 10; ++g) {
    const TruthGroup& group = table.groups[g];
    EXPECT_EQ(group.asked, 3);
    EXPECT_EQ(group.answered,
              right_answers(model_, kSentenceKinds[g / 2], g % 2 == 0 ? Language::english : Language::chinese, 3));
    for (const TruthScore& score : group.scores) {
      EXPECT_LE(score.cause, score.either);
      EXPECT_LE(score.either, static_cast<double>(group.answered));
      EXPECT_LE(score.cause, score.reciprocal);
    }
    answered += group.answered;
  }
  EXPECT_EQ(table.sum({}).asked, 30);
  EXPECT_EQ(table.sum({}).answered, answered);
  EXPECT_EQ(table.sum("copying").asked, 6);
}

TEST(TruthReport, SaysWhichMethodsAreAsGood) {
  TruthTable table{.model = {.name = "default", .family = "llama", .config = {}},
                   .recipe = "a recipe",
                   .count = 4,
                   .methods = {{"one", "first", "a"}, {"two", "second", "b"}, {"three", "third", "c"}},
                   .groups = {}};
  table.groups.push_back({"sense", "en", 4, 3, 4, 0, {{4, 4, 4}, {4, 4, 4}, {1, 1, 2}}});
  table.groups.push_back({"lookup", "en", 4, 4, 2, 2, {{1, 2, 1.5}, {0, 1, 1}, {0, 0, 0.5}}});
  Output out = Output::to_memory();
  write_markdown(out, table);
  out.finish();
  const auto has = [&](const std::string& text) { EXPECT_NE(out.text().find(text), std::string::npos) << text; };
  has("8 in all, which say 7 different facts; 6 (75.0 %) were answered rightly");
  has("    a recipe\n");
  has("| sense | en | 3 | 4 of 4 | 0 |");
  has("| method | sense | lookup | all |");
  has("| second | 100.0 % | 50.0 % | 83.3 % |");  // the cause or its carrier
  has("| first | 100.0 % | 50.0 % | 83.3 % |");   // the cause itself
  has("| third | 0.500 | 0.250 | 0.417 |");
  has("names the cause or its carrier in 6 of 6 sentences (100.0 %).");
  has("In all: no other method is as good.");
  has("In sense: as good or better: second.");
  has("In lookup: no other method is as good.");
  Output json = Output::to_memory();
  write_json(json, table);
  json.finish();
  EXPECT_NE(json.text().find("\"cause_or_carrier_first\":0.833333333"), std::string::npos) << json.text();
}

}  // namespace
}  // namespace regard::bench
