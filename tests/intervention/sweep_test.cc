// A sweep gives the bits of whole runs, for every kind of edit, however it is batched.

#include "intervention/sweeps.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kTokens = 60;
#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kWhatIfs = 32;  // instrumented, whole runs take ten times as long
#else
constexpr std::int64_t kWhatIfs = 200;
#endif

struct HasFile {
  testing::TinyModelFile file_{{.layers = 4, .context = 512, .type = DType::q4_1, .embedding_type = DType::q8_0}};
};

class SweepTest : public ::testing::Test, protected HasFile, protected Sweeps {
 protected:
  SweepTest() : Sweeps(file_.path(), kTokens, {MetricKind::logprob, 3}) {}
};

TEST_F(SweepTest, EveryKindHasTheBitsOfWholeRuns) {
  const testing::Restore restore;
  set_thread_count(1);  // thousands of small runs: other counts below
  for (const char* kind : kKinds) {
    SCOPED_TRACE(kind);
    const auto all = what_ifs(kind, kWhatIfs);
    const std::vector<double> values = swept(all);
    EXPECT_TRUE(same_bits(values, whole(all)));
    const double base = experiment_->measure().base();
    if (std::string_view(kind).starts_with("freeze")) continue;  // its companion alone would do
    EXPECT_GT(std::count_if(values.begin(), values.end(), [&](double value) { return value != base; }), kWhatIfs / 4);
  }
}

TEST_F(SweepTest, InAnyOrderAndBatch) {
  std::vector<std::vector<Cells>> all;
  for (const char* kind : kKinds)
    for (auto& cells : what_ifs(kind, 5)) all.push_back(std::move(cells));
  const std::vector<double> expected = swept(all);
  for (const std::int64_t batch_rows : {1, 7, 61, 300, 100000})
    EXPECT_TRUE(same_bits(expected, swept(all, batch_rows)));
  std::reverse(all.begin(), all.end());
  std::vector<double> backwards = swept(all, 500);
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_TRUE(same_bits(expected, backwards));
}

TEST_F(SweepTest, OnEveryTargetAndThreadCount) {
  std::vector<std::vector<Cells>> all;
  for (const char* kind : kKinds)
    for (auto& cells : what_ifs(kind, 3)) all.push_back(std::move(cells));
  testing::expect_same_bits_everywhere([&] { return swept(all); });
}

TEST_F(SweepTest, SeveralEditsAtOnce) {
  const testing::Restore restore;
  set_thread_count(1);
  Numbers numbers(5);
  std::vector<std::vector<Cells>> all;
  while (std::ssize(all) < kWhatIfs) {
    std::vector<Edit> edits;
    for (int e = 0; e < 3; ++e) edits.push_back(somewhere(kKinds[numbers.below(std::size(kKinds))], numbers));
    std::vector<Cells> cells = experiment_->resolve(edits);
    try {
      check(edits, cells, model_.config());
    } catch (const Error&) {
      continue;
    }
    all.push_back(std::move(cells));
  }
  EXPECT_TRUE(same_bits(swept(all), whole(all)));
}

TEST_F(SweepTest, MeasuredAtARowInTheMiddle) {
  const testing::Restore restore;
  set_thread_count(1);
  const std::int64_t row = 33;
  Experiment middle(
      model_, {.ids = ids_, .runs = {}, .edits = {}, .metric = {MetricKind::kl}, .row = row, .sites = Sweep::sites()},
      true);
  for (const char* kind : {"zero z", "block edge", "zero v", "zero resid_pre"}) {
    const auto all = what_ifs(kind, kWhatIfs);
    std::vector<double> values(all.size()), expected;
    Sweep sweep(model_, middle.clean(), middle.measure(), {.row = row});
    sweep.run(
        std::ssize(all), [&](std::int64_t i) { return all[i]; },
        [&](const WhatIfResult& one) { values[one.index] = one.value; });
    for (const auto& cells : all)
      expected.push_back(whole_run(model_, ids_, cells, middle.measure(), row).result.value);
    EXPECT_TRUE(same_bits(values, expected)) << kind;
  }
}

TEST_F(SweepTest, NullEditsAreExactlyZero) {
  const double base = experiment_->measure().base();
  for (const char* kind : {"scale edge by=1", "scale z by=1", "scale v by=1", "scale mlp_out by=1", "freeze pattern",
                           "patch k from=clean", "patch v from=clean", "patch q from=clean", "patch z from=clean",
                           "patch pattern from=clean", "patch attn_out from=clean", "patch mlp_out from=clean",
                           "patch resid_pre from=clean", "patch resid_post from=clean"}) {
    SCOPED_TRACE(kind);
    const Edit edit = parse_edit(kind);
    const Experiment experiment(
        model_, {.ids = ids_, .runs = {}, .edits = {edit}, .metric = {MetricKind::logprob, 3}, .sites = Sweep::sites()},
        false);
    const PatchResult result = patch(experiment);
    EXPECT_EQ(result.edited - result.base, 0.0);
    EXPECT_TRUE(same_bits(result.before, result.after));
    EXPECT_EQ(result.divergence.kl, 0.0);
    EXPECT_EQ(result.divergence.tvd, 0.0);
    EXPECT_EQ(result.divergence.jsd, 0.0);
    EXPECT_GT(result.receipts[0].matched, 0);
    EXPECT_EQ(result.receipts[0].changed, 0);
    const auto cells = experiment.resolve(experiment.edits());
    Sweep sweep(model_, experiment.clean(), experiment.measure(), {});
    sweep.run(
        1, [&](std::int64_t) { return cells; }, [&](const WhatIfResult& one) { EXPECT_EQ(one.value, base); });
  }
}

}  // namespace
}  // namespace regard
