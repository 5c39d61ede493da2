// Edits and sweeps of every family that reads one text (tests/data/families): rows that read both ways, windows on one
// side and on both, norms behind the sum, parallel branches, learned sinks, mixtures of experts.

#include <cmath>
#include <set>

#include "intervention/prepared_edits.h"
#include "intervention/sweeps.h"
#include "intervention/why.h"
#include "model/taps.h"
#include "model/visible_keys.h"
#include "reading/reading_tap.h"
#include "support/families.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kFamilyTokens = 40;  // more than any window there

class FamilySweep : public ::testing::TestWithParam<std::string> {};

// Where not all is to be tried: one of each thing that blocks and masks may do differently.
const std::set<std::string> kThorough = {"bert", "modernbert", "gemma3", "gpt_oss", "gpt_neox"};

#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kMany = 6, kSome = 1;
#else
constexpr std::int64_t kMany = 16, kSome = 3;
#endif

TEST_P(FamilySweep, HasTheBitsOfWholeRuns) {
  const testing::Restore restore;
  set_thread_count(1);
  const std::int64_t count = kThorough.contains(GetParam()) ? kMany : kSome;
  for (const std::int64_t row : {kFamilyTokens - 1, kFamilyTokens / 3}) {
    Sweeps sweeps(testing::families_folder() / GetParam(), kFamilyTokens,
                  default_metric(Model::load(testing::families_folder() / GetParam()).config()), row);
    std::int64_t moved = 0, all_of_them = 0;
    for (const char* kind : kKinds) {
      SCOPED_TRACE(kind);
      const auto all = sweeps.what_ifs(kind, count);
      const std::vector<double> values = sweeps.swept(all, 100);
      EXPECT_TRUE(same_bits(values, sweeps.whole(all)));
      for (const double value : values) moved += value != sweeps.experiment_->measure().base();
      all_of_them += std::ssize(values);
    }
    EXPECT_GT(moved, all_of_them / 4);
  }
}

// What is measured of all rows, where they read to the left too.
TEST_P(FamilySweep, HasTheBitsOfWholeRunsForTheEmbedding) {
  const testing::Restore restore;
  set_thread_count(1);
  Metric cosine{.kind = MetricKind::cosine};
  for (const std::int32_t id : {5, 9, 11, 3}) cosine.ids.push_back(id);
  Sweeps sweeps(testing::families_folder() / GetParam(), kFamilyTokens, cosine);
  for (const char* kind : {"block edge", "zero z", "patch v from=other", "zero resid_pre", "uniform pattern"}) {
    const auto all = sweeps.what_ifs(kind, kSome);
    EXPECT_TRUE(same_bits(sweeps.swept(all, 100), sweeps.whole(all))) << kind;
  }
}

// Every edge that there is counts once, and none that the mask hides.
TEST_P(FamilySweep, ReceiptsCountTheVisibleEdges) {
  const Model model = Model::load(testing::families_folder() / GetParam());
  const ModelConfig& c = model.config();
  const auto ids = testing::some_ids(kFamilyTokens, c.vocabulary);
  const auto receipt = [&](const std::string& text) {
    const Edit edit = parse_edit(text);
    const PreparedEdits prepared(model, ids, {}, std::span(&edit, 1));
    EditTap tap(c, {std::span<const Cells>(prepared.cells())});
    State state(c, 1, kFamilyTokens);
    feed(model, state, ids, 0, {.tap = &tap, .on_rows = {}});
    return tap.receipts()[0][0];
  };
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    // By what the mask means, not by the code that says so.
    const auto sees = [&](std::int64_t row, std::int64_t key) {
      const std::int64_t window = c.window[layer];
      return (!c.causal || key <= row) && (window == 0 || std::abs(key - row) < window);
    };
    std::int64_t edges = 0;
    for (std::int64_t row = 10; row < 14; ++row)
      for (std::int64_t key = 0; key < kFamilyTokens; ++key) edges += sees(row, key);
    for (const char* action : {"scale edge by=2", "block edge"}) {
      if (action == std::string("block edge") && edges == 0) continue;
      const Receipt all = receipt(fmt::format("{} layer={} row=10:14", action, layer));
      EXPECT_EQ(all.matched, edges * c.heads);
      EXPECT_EQ(all.changed, edges * c.heads);
      EXPECT_EQ(all.passed, edges * c.heads);
    }
    for (const std::int64_t key : {0, 9, 12, 30}) {
      const std::string one = fmt::format("block edge layer={} row=12 key={} head=1", layer, key);
      if (sees(12, key)) {
        EXPECT_EQ(receipt(one).changed, 1) << one;
      } else {
        EXPECT_THROW(receipt(one), Error) << one;  // outside: matched 0
      }
    }
  }
}

ReadingRequest weights_of(std::vector<std::int64_t> layers) {
  ReadingRequest request;
  request.layers = std::move(layers);
  request.statistics = {Statistic::weights, Statistic::sink_share};
  for (std::int64_t row = 0; row < kFamilyTokens; ++row) request.rows.push_back(row);
  return request;
}

Reading read_under(const Model& model, const std::vector<std::int32_t>& ids, const std::vector<std::string>& texts,
                   const ReadingRequest& request) {
  std::vector<Edit> edits;
  for (const std::string& text : texts) edits.push_back(parse_edit(text));
  const PreparedEdits prepared(model, ids, {{"other", testing::some_ids(kFamilyTokens, model.config().vocabulary, 2)}},
                               edits);
  EditTap making(model.config(), {std::span<const Cells>(prepared.cells())});
  ReadingTap looking(model, request, ids);
  Taps taps({&making, &looking});
  State state(model.config(), 1, kFamilyTokens);
  feed(model, state, ids, 0, {.tap = &taps, .on_rows = {}});
  return looking.finish(&state, nullptr, &making);
}

// Blocking an edge of the first layer is renormalising its row; an equal share for each is one over their number, and a
// permuted row has the same weights elsewhere: over all that a row sees, on both sides.
TEST_P(FamilySweep, PatternsUnderEditsAreThoseThatTheWordsMean) {
  const Model model = Model::load(testing::families_folder() / GetParam());
  const ModelConfig& c = model.config();
  const auto ids = testing::some_ids(kFamilyTokens, c.vocabulary);
  const Reading clean = read_under(model, ids, {}, weights_of({0}));
  const Reading blocked = read_under(model, ids, {"block edge layer=0 key=11"}, weights_of({0}));
  const Reading uniform = read_under(model, ids, {"uniform pattern layer=0"}, weights_of({0}));
  const Reading permuted = read_under(model, ids, {"permute pattern layer=0 seed=3"}, weights_of({0}));
  for (std::int64_t h = 0; h < c.heads; ++h) {
    for (std::int64_t row = 0; row < kFamilyTokens; ++row) {
      const KeyRange seen = visible_keys(c, 0, row, kFamilyTokens);
      const double left = 1 - static_cast<double>(clean.weights(0, h, row, 11));
      std::vector<float> before, after;
      for (std::int64_t key = 0; key < kFamilyTokens; ++key) {
        const bool visible = key >= seen.begin && key < seen.end;
        if (left > 0.01) {  // else nothing is left of so few bits
          const double expected = key == 11 ? 0 : clean.weights(0, h, row, key) / left;
          // Both rows' sums, and the difference from 1, are off by as many roundings as there are keys, at most.
          EXPECT_NEAR(blocked.weights(0, h, row, key), expected, 3 * kFamilyTokens * 0x1p-24 / left / left);
        }
        const double even = visible ? 1.0 / static_cast<double>(seen.end - seen.begin) : 0.0;
        EXPECT_NEAR(uniform.weights(0, h, row, key), even, even * 0x1p-24);  // one quotient of whole numbers
        before.push_back(clean.weights(0, h, row, key));
        after.push_back(permuted.weights(0, h, row, key));
      }
      std::sort(before.begin(), before.end());
      std::sort(after.begin(), after.end());
      for (std::size_t i = 0; i < before.size(); ++i)
        EXPECT_NEAR(before[i], after[i], before[i] * 2 * kFamilyTokens * 0x1p-24);  // the sum in another order
    }
  }
  // A pattern from another run is that run's own, also in a later layer.
  const auto other = testing::some_ids(kFamilyTokens, c.vocabulary, 2);
  const Reading theirs = read_under(model, other, {}, weights_of({1}));
  const Reading patched = read_under(model, ids, {"patch pattern from=other"}, weights_of({1}));
  EXPECT_TRUE(same_bits(std::span(theirs.weights.data(), static_cast<std::size_t>(theirs.weights.size())),
                        std::span(patched.weights.data(), static_cast<std::size_t>(patched.weights.size()))));
}

// What runs again under edits gives what ran the first time.
TEST_P(FamilySweep, RolloutUnderEditsIsOfTheEditedWeights) {
  const Model model = Model::load(testing::families_folder() / GetParam());
  const ModelConfig& c = model.config();
  const auto ids = testing::some_ids(kFamilyTokens, c.vocabulary);
  ReadingRequest request = weights_of({0, 1});
  request.statistics.push_back(Statistic::rollout);
  const Reading r = read_under(
      model, ids, {"zero z layer=0 head=1", "block edge layer=1 key=5", "patch k from=other key=7"}, request);
  std::vector<double> share(kFamilyTokens);
  share[kFamilyTokens - 1] = 1;
  for (std::int64_t l = 1; l >= 0; --l) {
    std::vector<double> below(kFamilyTokens);
    for (std::int64_t i = 0; i < kFamilyTokens; ++i) {
      below[i] += share[i] / 2;
      for (std::int64_t h = 0; h < c.heads; ++h)
        for (std::int64_t j = 0; j < kFamilyTokens; ++j)
          below[j] += share[i] * r.weights(l, h, i, j) / static_cast<double>(2 * c.heads);
    }
    share = below;
    for (std::int64_t j = 0; j < kFamilyTokens; ++j)
      EXPECT_NEAR(r.rollout(l, kFamilyTokens - 1, j), share[j],
                  share[j] * 0x1p-23 + 1e-12);  // exact sums, rounded to f32
  }
}

// `why` asks what its words say: each number is that of a whole run with the edit.
TEST_P(FamilySweep, WhyIsAboutTheRowsThatItNames) {
  const Model model = Model::load(testing::families_folder() / GetParam());
  const ModelConfig& c = model.config();
  const auto ids = testing::some_ids(kFamilyTokens, c.vocabulary),
             other = testing::some_ids(kFamilyTokens, c.vocabulary, 2);
  const bool of_all = of_all_rows(default_metric(c).kind);
  const std::int64_t row = 25;
  const WhyResult r = why(model, {.ids = ids, .contrast = other, .metric = default_metric(c), .row = row});
  EXPECT_EQ(r.row, of_all ? -1 : row);
  EXPECT_EQ(r.seen, of_all || !c.causal ? kFamilyTokens : row + 1);
  EXPECT_EQ(r.what_ifs, what_ifs_of({.ids = ids, .contrast = other, .metric = default_metric(c), .row = row}, c));
  double attention = 0, rollout = 0, norm_weighted = 0;
  for (std::int64_t s = 0; s < kFamilyTokens; ++s) {
    attention += r.attention[s];
    rollout += r.rollout[s];
    norm_weighted += r.norm_weighted[s];
  }
  const double rounding = kFamilyTokens * 0x1p-24;
  if (c.sinks) {  // which take their share
    EXPECT_LT(attention, 1);
  } else {
    EXPECT_NEAR(attention, 1, rounding);
    EXPECT_NEAR(rollout, 1, 2 * rounding);  // of two layers
  }
  EXPECT_NEAR(norm_weighted, 1, rounding);

  const Experiment experiment(model, {.ids = ids, .runs = {}, .edits = {}, .metric = r.metric, .row = row}, true);
  const auto effect = [&](const std::string& text) {
    const Edit edit = parse_edit(text);
    const std::vector<Cells> cells = experiment.resolve(std::span(&edit, 1));
    return whole_run(model, ids, cells, experiment.measure(), row).result.value - r.base;
  };
  const std::int64_t end = of_all ? kFamilyTokens : row + 1;
  for (const std::int64_t s : {std::int64_t{0}, std::int64_t{20}, row, std::int64_t{30}}) {
    if (of_all || s == row || s >= r.seen) {
      EXPECT_TRUE(std::isnan(r.hide_from_last[s]));
    } else {
      EXPECT_EQ(r.hide_from_last[s], effect(fmt::format("block edge row={} key={}", row, s)));
    }
    const std::string others = c.causal ? fmt::format("{}:{}", s + 1, end)
                               : s > 0  ? fmt::format("0:{},{}:", s, s + 1)
                                        : "1:";
    if (c.causal && s + 1 >= end) {
      EXPECT_EQ(r.hide_from_all[s], 0.0);
    } else {
      EXPECT_EQ(r.hide_from_all[s], effect(fmt::format("block edge row={} key={}", others, s)));
    }
  }
  EXPECT_EQ(r.zero_z(1, 1), effect("zero z layer=1 head=1"));
}

// What an edit of the first layer changes passes the input of the second, all of it: rows on both sides that read an
// edited key send what they read on.
TEST_P(FamilySweep, APathThroughTheNextInputIsTheWholeEffect) {
  const Model model = Model::load(testing::families_folder() / GetParam());
  const auto ids = testing::some_ids(kFamilyTokens, model.config().vocabulary);
  for (const char* sender : {"patch k from=other layer=0 key=20 kv_head=0", "zero v layer=0 key=20",
                             "zero z layer=0 row=22", "block edge layer=0 key=20", "uniform pattern layer=0 head=1"}) {
    SCOPED_TRACE(sender);
    const auto run = [&](std::vector<Edit> receivers) {
      const Experiment experiment(model,
                                  {.ids = ids,
                                   .runs = {{"other", testing::some_ids(kFamilyTokens, model.config().vocabulary, 2)}},
                                   .edits = {parse_edit(sender)},
                                   .metric = default_metric(model.config()),
                                   .row = 25,
                                   .receivers = std::move(receivers)},
                                  false);
      const PatchResult result = patch(experiment);
      EXPECT_NE(result.edited, result.base);
      return result.edited;
    };
    EXPECT_EQ(run({}), run({parse_receiver("resid_pre layer=1")}));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(testing::families_folder()))
    if (std::filesystem::exists(entry.path() / "expected.safetensors") &&
        !std::filesystem::exists(entry.path() / "expected_encoder.safetensors"))
      names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Every, FamilySweep, ::testing::ValuesIn(names()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace regard
