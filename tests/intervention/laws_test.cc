// What edits must do to a running model, by formula: weights that sum to one again, keys and values that do different
// things, heads that add up; and the faults that users of other tools reported (cases of inspection, B, C and E).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "intervention/experiment.h"
#include "intervention/sweep.h"
#include "intervention/sweep_plan.h"
#include "model/taps.h"
#include "reading/reading_tap.h"
#include "support/targets.h"
#include "support/tiny_model.h"
#include "tensor/error.h"

namespace regard {
namespace {

using testing::same_bits;

constexpr std::int64_t kFewTokens = 12;

class Intervention : public ::testing::Test {
 protected:
  // Heads of another size than width / heads, and groups of three.
  Intervention()
      : file_({.layers = 3, .heads = 6, .kv_heads = 2, .head_dim = 24, .width = 64, .tied = false}),
        model_(Model::load(file_.path())),
        c_(model_.config()),
        ids_(testing::some_ids(kFewTokens, c_.vocabulary)),
        other_(testing::some_ids(kFewTokens, c_.vocabulary, 2)),
        clean_(model_, ids_, {Site::rot_q, Site::rot_k, Site::v, Site::z, Site::attn_out, Site::result}),
        from_(model_, other_, {Site::rot_q, Site::rot_k, Site::v}) {}

  std::vector<Cells> cells(std::vector<std::string> edits) {
    const Runs runs = {{kClean, {kFewTokens, &clean_}}, {"other", {kFewTokens, &from_}}};
    std::vector<Cells> cells;
    for (const std::string& edit : edits) cells.push_back(resolve(parse_edit(edit), c_, runs));
    return cells;
  }

  // Everything of a run with edits: weights of all rows, the sites that are looked at, the last residual.
  struct Seen {
    Tensor<float, 4> weights;      // [l][h][row][key]
    Tensor<float, 3> z, attn_out;  // of the last layer: [T, H, E], [T, 1, C]
    std::vector<float> resid;
    std::vector<Receipt> receipts;
  };
  class Look final : public Tap {
   public:
    Look(Seen& seen, std::int64_t layer) : seen_(seen), layer_(layer) {}
    bool wants(Site site, std::int64_t layer) const override {
      return layer == layer_ && (site == Site::z || site == Site::attn_out);
    }
    void at(Site site, std::int64_t, std::span<const Row> rows, View<float, 3> value) override {
      Tensor<float, 3>& kept = site == Site::z ? seen_.z : seen_.attn_out;
      if (kept.size() == 0) kept = Tensor<float, 3>({kFewTokens, value.shape[1], value.shape[2]});
      for (std::size_t r = 0; r < rows.size(); ++r)
        std::copy_n(value[r].data, value.shape[1] * value.shape[2], &kept(rows[r].position, 0, 0));
    }

   private:
    Seen& seen_;
    std::int64_t layer_;
  };
  Seen run(const std::vector<Cells>& cells, std::int64_t look_at = 0, std::int64_t chunk = 512) {
    Seen seen;
    ReadingRequest request;
    for (std::int64_t row = 0; row < kFewTokens; ++row) request.rows.push_back(row);
    request.statistics = {Statistic::weights};
    EditTap edit(c_, {std::span<const Cells>(cells)});
    Look look(seen, look_at);
    ReadingTap reading(model_, request, ids_);
    Taps taps({&edit, &look, &reading});
    State state(c_);
    feed(model_, state, ids_, 0,
         {.chunk = chunk, .tap = &taps, .on_rows = [&](std::int64_t, View<const float, 2> rows) {
            seen.resid.insert(seen.resid.end(), rows.data, rows.data + rows.size());
          }});
    seen.weights = reading.finish().weights;
    seen.receipts = edit.receipts()[0];
    return seen;
  }

  testing::TinyModelFile file_;
  Model model_;
  const ModelConfig& c_;
  std::vector<std::int32_t> ids_, other_;
  RunRecord clean_, from_;
};

TEST_F(Intervention, ABlockedEdgeRenormalisesItsRow) {
  const Seen clean = run({}), edited = run(cells({"block edge layer=0 row=9 key=2,5"}));
  for (std::int64_t h = 0; h < c_.heads; ++h) {
    for (std::int64_t row = 0; row < kFewTokens; ++row) {
      const float* p = &clean.weights(0, h, row, 0);
      const float* q = &edited.weights(0, h, row, 0);
      const double left = row == 9 ? 1.0 - p[2] - p[5] : 1.0;
      for (std::int64_t s = 0; s < kFewTokens; ++s) {
        const double expected = row == 9 && (s == 2 || s == 5) ? 0.0 : p[s] / left;
        EXPECT_NEAR(q[s], expected, 0x1p-22 * (1 / left)) << row << ' ' << s;
      }
    }
  }
  EXPECT_EQ(edited.receipts[0].matched, 2 * c_.heads);
  EXPECT_EQ(edited.receipts[0].changed, 2 * c_.heads);
}

TEST_F(Intervention, AScaledEdgeTakesItsShareOfTheOdds) {
  const Seen clean = run({}), edited = run(cells({"scale edge by=3 layer=0 head=1 row=9 key=2"}));
  const float* p = &clean.weights(0, 1, 9, 0);
  for (std::int64_t s = 0; s < kFewTokens; ++s) {
    const double expected = p[s] * (s == 2 ? 3.0 : 1.0) / (1 + 2.0 * p[2]);
    EXPECT_NEAR(edited.weights(0, 1, 9, s), expected, 0x1p-21);
  }
}

TEST_F(Intervention, PatternsAreWhatTheirNamesSay) {
  const Seen clean = run({});
  const Seen uniform = run(cells({"uniform pattern layer=1 head=2"}));
  const Seen permuted = run(cells({"permute pattern seed=5 layer=0 head=4"}));
  const Seen patched = run(cells({"patch pattern from=other layer=0 head=3"}));
  const Seen frozen = run(cells({"freeze pattern layer=1:3", "patch v from=other layer=0"}));
  for (std::int64_t row = 0; row < kFewTokens; ++row) {
    std::vector<float> before, after;
    for (std::int64_t s = 0; s < kFewTokens; ++s) {
      EXPECT_EQ(uniform.weights(1, 2, row, s), s > row ? 0.0f : 1.0f / static_cast<float>(row + 1));
      before.push_back(clean.weights(0, 4, row, s));
      after.push_back(permuted.weights(0, 4, row, s));
      for (std::int64_t l : {1, 2})
        for (std::int64_t h = 0; h < c_.heads; ++h)
          EXPECT_EQ(frozen.weights(l, h, row, s), clean.weights(l, h, row, s));
    }
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    for (std::int64_t s = 0; s < kFewTokens; ++s)
      EXPECT_NEAR(before[s], after[s], 0x1p-23) << row;  // the sum's order differs
  }
  EXPECT_FALSE(same_bits(frozen.resid, clean.resid));
  // The patched head reads as it does in the other run.
  ReadingRequest request;
  for (std::int64_t row = 0; row < kFewTokens; ++row) request.rows.push_back(row);
  request.statistics = {Statistic::weights};
  ReadingTap reading(model_, request, other_);
  State state(c_);
  feed(model_, state, other_, 0, {.tap = &reading, .on_rows = {}});
  const Reading other = reading.finish();
  for (std::int64_t row = 0; row < kFewTokens; ++row)
    for (std::int64_t s = 0; s < kFewTokens; ++s) EXPECT_EQ(patched.weights(0, 3, row, s), other.weights(0, 3, row, s));
  EXPECT_EQ(uniform.receipts[0].matched, kFewTokens);
  EXPECT_EQ(uniform.receipts[0].changed, kFewTokens - 1);  // the first row reads only itself
}

// What row 2 of a head gets when position 1's key, value, or both are another run's: worked out in float64 from q, k,
// v.
TEST_F(Intervention, KeysOnlyValuesOnlyAndBothOnThreeTokens) {
  const auto q = clean_.at(Site::rot_q, 0), k = clean_.at(Site::rot_k, 0), v = clean_.at(Site::v, 0);
  const auto other_k = from_.at(Site::rot_k, 0), other_v = from_.at(Site::v, 0);
  const std::int64_t row = 2, h = 4, g = 1;
  const auto by_hand = [&](bool keys, bool values, std::int64_t e) {
    double score[3], sum = 0, z = 0;
    for (std::int64_t s = 0; s <= row; ++s) {
      score[s] = 0;
      for (std::int64_t d = 0; d < c_.head_dim; ++d)
        score[s] += static_cast<double>(q(row, h, d)) * (keys && s == 1 ? other_k : k)(s, g, d);
      score[s] = std::exp(score[s] * c_.attention_scale);
      sum += score[s];
    }
    for (std::int64_t s = 0; s <= row; ++s) z += score[s] / sum * (values && s == 1 ? other_v : v)(s, g, e);
    return z;
  };
  const std::vector<std::string> named[] = {{"patch k from=other layer=0 key=1"},
                                            {"patch v from=other layer=0 key=1"},
                                            {"patch k from=other layer=0 key=1", "patch v from=other layer=0 key=1"}};
  for (int i = 0; i < 3; ++i) {
    const Seen seen = run(cells(named[i]));
    double differs = 0;
    for (std::int64_t e = 0; e < c_.value_dim; ++e) {
      double size = 0;
      for (std::int64_t s = 0; s <= row; ++s)
        size = std::max<double>(size, std::fabs(v(s, g, e)) + std::fabs(other_v(s, g, e)));
      EXPECT_NEAR(seen.z(row, h, e), by_hand(i != 1, i != 0, e), 0x1p-20 * size) << i;
      differs += std::fabs(seen.z(row, h, e) - clean_.at(Site::z, 0)(row, h, e));
    }
    EXPECT_GT(differs, 0.01);
  }
}

// B15, B16: a head is zeroed before W_O, so attn_out loses what that head adds to it.
TEST_F(Intervention, ZeroingAHeadTakesItsContribution) {
  const Seen edited = run(cells({"zero z layer=0 head=3"}));
  const auto attn_out = clean_.at(Site::attn_out, 0), result = clean_.at(Site::result, 0);
  for (std::int64_t t = 0; t < kFewTokens; ++t)
    for (std::int64_t i = 0; i < c_.width; ++i)
      EXPECT_NEAR(edited.attn_out(t, 0, i), attn_out(t, 0, i) - result(t, 3, i),
                  0x1p-20 * (1 + std::fabs(attn_out(t, 0, i))));
}

// B14: edits are a plan, not a program: their order says nothing.
TEST_F(Intervention, OrderOfEditsChangesNothing) {
  const std::vector<std::string> edits = {"patch k from=other key=3", "zero z head=1", "block edge row=5: key=2",
                                          "mean mlp_out layer=1", "patch pattern from=other layer=2 head=0 row=1:4"};
  // mean of this run's mlp_out
  RunRecord clean(model_, ids_, {Site::mlp_out, Site::rot_q, Site::rot_k});
  const Runs runs = {{kClean, {kFewTokens, &clean}}, {"other", {kFewTokens, &from_}}};
  std::vector<Cells> forwards;
  for (const std::string& edit : edits) forwards.push_back(resolve(parse_edit(edit), c_, runs));
  const std::vector<Cells> backwards(forwards.rbegin(), forwards.rend());
  const Seen a = run(forwards), b = run(backwards);
  EXPECT_TRUE(same_bits(a.resid, b.resid));
  EXPECT_FALSE(same_bits(a.resid, run({}).resid));
}

// Prefill, chunks and decode make the same edits with the same bits, and looking changes nothing.
TEST_F(Intervention, InPrefillAndDecodeAlike) {
  for (const char* edit :
       {"block edge row=5: key=2", "scale edge by=0.5 layer=1", "zero z head=1 row=3:8", "patch k from=other key=3",
        "patch v from=other key=3", "zero v key=2", "freeze pattern layer=2", "uniform pattern layer=1 head=2",
        "permute pattern seed=3 layer=0", "patch pattern from=other row=4"}) {
    SCOPED_TRACE(edit);
    const Seen whole = run(cells({edit, "scale mlp_out by=0.5 row=1"}));
    const Seen steps = run(cells({edit, "scale mlp_out by=0.5 row=1"}), 0, 1),
               sevens = run(cells({edit, "scale mlp_out by=0.5 row=1"}), 0, 7);
    EXPECT_TRUE(same_bits(whole.resid, steps.resid));
    EXPECT_TRUE(same_bits(whole.resid, sevens.resid));
    const auto all = [](const Tensor<float, 4>& t) { return std::vector<float>(t.data(), t.data() + t.size()); };
    EXPECT_TRUE(same_bits(all(whole.weights), all(steps.weights)));
    // Without readers.
    const std::vector<Cells> made = cells({edit, "scale mlp_out by=0.5 row=1"});
    EditTap tap(c_, {std::span<const Cells>(made)});
    State state(c_);
    std::vector<float> resid;
    feed(model_, state, ids_, 0, {.tap = &tap, .on_rows = [&](std::int64_t, View<const float, 2> rows) {
                                    resid.insert(resid.end(), rows.data, rows.data + rows.size());
                                  }});
    EXPECT_TRUE(same_bits(whole.resid, resid));
  }
}

// A fully blocked row reads nothing: its z is 0, and nothing becomes NaN (B, E41).
TEST_F(Intervention, ARowWithoutAnyEdgeReadsNothing) {
  const Seen edited = run(cells({"block edge layer=0 row=4"}));
  for (std::int64_t h = 0; h < c_.heads; ++h)
    for (std::int64_t e = 0; e < c_.value_dim; ++e) EXPECT_EQ(edited.z(4, h, e), 0.0f);
  for (const float x : edited.resid) EXPECT_TRUE(std::isfinite(x));
  const Seen values = run(cells({"zero v layer=0"}));
  for (std::int64_t i = 0; i < values.z.size(); ++i) EXPECT_EQ(values.z.data()[i], 0.0f);
}

// B21: what was captured stays as it was, however often it is used.
TEST_F(Intervention, NothingThatWasKeptIsWritten) {
  const auto bits = [](View<const float, 3> x) { return std::vector<float>(x.data, x.data + x.size()); };
  const std::vector<float> k = bits(clean_.at(Site::rot_k, 1)), other = bits(from_.at(Site::v, 1));
  run(cells({"patch v from=other", "permute pattern seed=1 row=3"}));
  EXPECT_TRUE(same_bits(k, bits(clean_.at(Site::rot_k, 1))));
  EXPECT_TRUE(same_bits(other, bits(from_.at(Site::v, 1))));
}

// C24: k and v have an axis of key/value heads, and patching each works.
TEST_F(Intervention, EachKeyValueHeadCanBePatched) {
  for (const char* edit :
       {"patch k from=other kv_head=0", "patch k from=other kv_head=1", "patch v from=other kv_head=1"}) {
    const Seen seen = run(cells({edit}));
    EXPECT_EQ(seen.receipts[0].matched, c_.layers * kFewTokens) << edit;
    EXPECT_EQ(seen.receipts[0].changed, c_.layers * kFewTokens) << edit;
  }
  EXPECT_THROW(cells({"patch k from=other kv_head=2"}), Error);
}

// How far a pattern moved, by its formula over whole rows.
TEST_F(Intervention, PatternsAreComparedByJensenShannon) {
  const Seen clean = run({});
  for (const char* edit : {"uniform pattern layer=1 head=2", "block edge layer=0 head=1 row=3: key=1",
                           "patch pattern from=other layer=0 head=4", "scale edge by=1 layer=0", "freeze pattern"}) {
    SCOPED_TRACE(edit);
    const Experiment experiment(
        model_, {.ids = ids_, .runs = {{"other", other_}}, .edits = {parse_edit(edit)}, .metric = {}}, false);
    const PatchResult result = patch(experiment);
    const std::vector<Cells> made = cells({edit});
    const Seen edited = run(made);
    double sum = 0, max = 0;
    std::int64_t n = 0;
    for (std::int64_t l : made[0].layers) {
      for (std::int64_t h : made[0].heads) {
        for (std::int64_t row : made[0].positions) {
          double jsd = 0;
          for (std::int64_t s = 0; s <= row; ++s) {
            const double p = clean.weights(l, h, row, s), q = edited.weights(l, h, row, s), m = (p + q) / 2;
            if (p > 0) jsd += p * std::log(p / m) / 2;
            if (q > 0) jsd += q * std::log(q / m) / 2;
          }
          sum += jsd, max = std::max(max, jsd), ++n;
        }
      }
    }
    ASSERT_TRUE(result.pattern.has_value());
    EXPECT_EQ(result.pattern->rows, n);
    EXPECT_NEAR(result.pattern->mean, sum / static_cast<double>(n), 0x1p-20);
    EXPECT_NEAR(result.pattern->max, max, 0x1p-20);
    const bool nothing = result.receipts[0].changed == 0;
    EXPECT_EQ(result.pattern->max == 0.0, nothing);  // exactly: both patterns are the kernel's
  }
  const Experiment values(model_, {.ids = ids_, .runs = {}, .edits = {parse_edit("zero v")}, .metric = {}}, false);
  EXPECT_FALSE(patch(values).pattern.has_value());
}

// Path patching: what a head sends arrives at the receivers alone.
TEST_F(Intervention, APathReachesOnlyItsReceivers) {
  const auto effect = [&](const char* sender, std::vector<Edit> receivers) {
    const Experiment experiment(model_,
                                {.ids = ids_,
                                 .runs = {{"other", other_}},
                                 .edits = {parse_edit(sender)},
                                 .metric = {MetricKind::logprob, 3},
                                 .receivers = std::move(receivers)},
                                false);
    const PatchResult result = patch(experiment);
    return result.edited - result.base;
  };
  const char* sender = "patch z from=other layer=1 head=2";
  EXPECT_EQ(effect(sender, {parse_receiver("q layer=1 head=2")}), 0.0);  // not after the sender
  EXPECT_NE(effect(sender, {parse_receiver("z layer=2 head=0")}), 0.0);
  EXPECT_NE(effect(sender, {parse_receiver("pattern layer=2")}), 0.0);
  EXPECT_EQ(effect("patch z from=clean layer=1", {parse_receiver("q layer=2")}), 0.0);
  const double q = effect(sender, {parse_receiver("q layer=2")});
  EXPECT_NE(q, 0.0);
  // The same by hand: a run in which the sender's z is the other run's and all others are kept; its q in a clean run.
  std::vector<Cells> sending = cells({"patch z from=clean"});
  RunRecord z(model_, other_, {Site::z});
  Cells sent = cells({"zero z layer=1 head=2"})[0];
  sent.action = Action::patch;
  sent.from = &z;
  sending.push_back(sent);
  EditTap edits(c_, {std::span<const Cells>(sending)});
  RunRecord record(model_, ids_, {Site::rot_q}, nullptr, &edits);
  Cells receiver = cells({"patch q from=clean layer=2"})[0];
  receiver.from = &record;
  const Measure measure(model_, {MetricKind::logprob, 3}, clean_.final_resid(), kFewTokens - 1);
  EXPECT_EQ(whole_run(model_, ids_, std::span(&receiver, 1), measure, kFewTokens - 1).result.value - measure.base(), q);
}

// Whatever the sender is, what it changes is sent: keeping the other heads must not undo it.
TEST_F(Intervention, APathStartsAtEverySite) {
  for (const char* sender :
       {"block edge layer=1 row=5: key=2", "scale edge by=2 layer=1 head=3 key=2", "uniform pattern layer=1 head=2",
        "patch q from=other layer=1 head=2", "patch k from=other layer=1 key=4", "zero v layer=1 kv_head=1 key=3",
        "zero z layer=1 head=2", "zero attn_out layer=1", "zero mlp_out layer=1", "zero resid_post layer=1 row=4"}) {
    SCOPED_TRACE(sender);
    const Experiment experiment(model_,
                                {.ids = ids_,
                                 .runs = {{"other", other_}},
                                 .edits = {parse_edit(sender)},
                                 .metric = {MetricKind::logprob, 3},
                                 .receivers = {parse_receiver("resid_pre layer=2")}},
                                false);
    const PatchResult result = patch(experiment);
    EXPECT_GT(result.receipts[0].changed, 0);
    EXPECT_GT(result.received[0].changed, 0);
    EXPECT_NE(result.edited, result.base);
  }
}

// The contrast is measured where the text is.
TEST_F(Intervention, TheContrastIsMeasuredAtTheSameRow) {
  for (const std::int64_t row : {std::int64_t{3}, std::int64_t{-1}, std::int64_t{-2}}) {
    const Experiment experiment(model_,
                                {.ids = ids_,
                                 .runs = {{"contrast", ids_}},
                                 .edits = {parse_edit("zero z layer=0 head=1")},
                                 .metric = {},
                                 .row = row},
                                false);
    const PatchResult result = patch(experiment);
    EXPECT_EQ(*result.contrast, result.base);
    EXPECT_FALSE(result.recovery.has_value());
  }
}

TEST_F(Intervention, ASweepSkipsWhatMatchesNothing) {
  const Runs runs = {{kClean, {kFewTokens, nullptr}}};
  const SweepPlan plan({parse_edit("block edge layer=0 head=0")}, "row,key", c_, runs);
  EXPECT_EQ(plan.count(), kFewTokens * kFewTokens);
  EXPECT_EQ(std::ssize(plan.matching()), kFewTokens * (kFewTokens + 1) / 2);
  const auto refused = [&](const char* edit, const char* each, const char* says) {
    try {
      SweepPlan(std::vector{parse_edit(edit)}, each, c_, runs).matching();
      ADD_FAILURE() << edit << " each " << each << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::usage);
      EXPECT_NE((error.message + error.hint).find(says), std::string::npos) << error.message << error.hint;
    }
  };
  refused("zero z", "", "no axis ''");
  refused("zero z", "layer,hed", "no axis 'hed'");
  refused("zero z", "layer,layer", "twice");
  refused("zero z", "kv_head", "no edit has that selector");
  refused("zero z layer=3:1", "head", "chooses no layer");
  refused("zero z layer=1", "layer", "leave layer= out");
  refused("block edge row=2 layer=0 key=5", "head", "matches nothing");
}

}  // namespace
}  // namespace regard
