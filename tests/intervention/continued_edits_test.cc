// Edits of a text while it is made: every row that is made has the bits of a whole run of the finished text, with the
// same edits written out for its rows and keys; in every family that a text can be continued with.

#include "intervention/continued_edits.h"

#include <algorithm>
#include <set>

#include "intervention/continued_two_texts.h"
#include "model/forward.h"
#include "model/source.h"
#include "support/errors.h"
#include "support/families.h"
#include "support/targets.h"
#include "support/tiny_model.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::same_bits;

constexpr std::int64_t kPrompt = 12, kMade = 9;      // together more than most windows there
constexpr std::int64_t kRows = kPrompt + kMade - 1;  // the last token that is made is not read
// Planned longer, as generate does that stops early: past what phi3 turns its rotation at.
constexpr Continuation kContinuation{.rows = kRows, .planned_length = 40};

std::vector<Edit> parsed(const std::vector<std::string>& texts) {
  std::vector<Edit> edits;
  for (const std::string& text : texts) edits.push_back(parse_edit(text));
  return edits;
}

struct Made {
  std::vector<std::int32_t> ids;  // all that was read: prompt and what was made
  std::vector<float> logits;      // of the prompt's last row and every one that was made
  std::vector<Receipt> receipts;
};

std::int32_t best(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Greedily, as `generate` does. edits: null for none. The state holds nothing yet.
Made make(const Model& model, State& state, const std::vector<std::int32_t>& prompt, ContinuedEdits* edits,
          std::int64_t chunk = 512) {
  Tap* const tap = edits != nullptr ? &edits->tap() : nullptr;
  Made made{.ids = prompt, .logits = {}, .receipts = {}};
  Tensor<float, 2> resid = feed(model, state, prompt, 0, {.chunk = chunk, .tap = tap, .on_rows = {}});
  for (std::int64_t step = 1; step <= kMade; ++step) {
    Tensor<float, 2> scores({1, model.config().vocabulary});
    logits(model, resid.view(), scores.view());
    made.logits.insert(made.logits.end(), scores.data(), scores.data() + scores.size());
    if (step == kMade) break;
    made.ids.push_back(best({scores.data(), static_cast<std::size_t>(scores.size())}));
    resid = feed(model, state, std::span(made.ids).last(1), 0, {.tap = tap, .on_rows = {}});
  }
  if (edits != nullptr)
    for (const auto& [name, receipt] : edits->receipts()) made.receipts.push_back(receipt);
  return made;
}

class Continued : public ::testing::TestWithParam<std::string> {
 protected:
  Continued()
      : model_(Model::load(testing::families_folder() / GetParam())),
        c_(model_.config()),
        prompt_(testing::some_ids(kPrompt, c_.vocabulary)),
        runs_{{"other", testing::some_ids(kPrompt, c_.vocabulary, 2)},
              {"longer", testing::some_ids(kRows + 3, c_.vocabulary, 3)}} {}

  Made generated(const std::vector<std::string>& edits, std::int64_t chunk = 512) {
    State state(c_, 1, kContinuation.planned_length);
    if (edits.empty()) return make(model_, state, prompt_, nullptr, chunk);
    ContinuedText continued(model_, prompt_, runs_, parsed(edits), kContinuation);
    return make(model_, state, prompt_, &continued, chunk);
  }

  // The same of a whole run of what was read. The prompt is a run by that name, for what is taken from it.
  Made whole(const std::vector<std::int32_t>& ids, const std::vector<std::string>& texts) {
    auto runs = runs_;
    runs["prompt"] = prompt_;
    const std::vector<Edit> edits = parsed(texts);
    const PreparedEdits prepared(model_, ids, runs, edits, nullptr,
                                 {.rows = 0, .planned_length = kContinuation.planned_length});
    EditTap tap(c_, {std::span<const Cells>(prepared.cells())});
    State state(c_, 1, kContinuation.planned_length);
    const std::vector<float> all = testing::all_logits(model_, state, ids, 512, 0, &tap);
    return {
        .ids = ids, .logits = {all.begin() + (kPrompt - 1) * c_.vocabulary, all.end()}, .receipts = tap.receipts()[0]};
  }

  Model model_;
  const ModelConfig& c_;
  std::vector<std::int32_t> prompt_;
  std::map<std::string, std::vector<std::int32_t>> runs_;
};

struct Written {
  std::vector<std::string> continued, whole;  // as typed for a prompt, and what it means of the finished text
};
static_assert(kPrompt == 12 && kRows == 20, "the numbers below");
const Written kWritten[] = {
    {{"block edge key=4"}, {"block edge key=4"}},
    {{"block edge row=-3: key=5,9 head=1"}, {"block edge row=9:20 key=5,9 head=1"}},
    {{"block edge row=14:17 key=:-1"}, {"block edge row=14:17 key=0:11"}},
    {{"block edge row=12: key=-1:"}, {"block edge row=12:20 key=11:20"}},
    {{"scale edge by=0.5 layer=1"}, {"scale edge by=0.5 layer=1"}},
    {{"zero z head=1 layer=0"}, {"zero z head=1 layer=0"}},
    {{"zero z row=-1"}, {"zero z row=11"}},
    {{"zero attn_out row=13,15"}, {"zero attn_out row=13,15"}},
    {{"zero v key=13:"}, {"zero v key=13:20"}},
    {{"scale mlp_out by=-0.5 row=*"}, {"scale mlp_out by=-0.5 row=0:20"}},
    {{"scale v by=2 key=:3,-2,14"}, {"scale v by=2 key=0:3,10,14"}},
    {{"zero resid_pre layer=1 row=16"}, {"zero resid_pre layer=1 row=16"}},
    {{"mean z layer=0"}, {"mean z layer=0 from=prompt"}},
    {{"mean v layer=1 key=10:"}, {"mean v layer=1 key=10: from=prompt"}},
    {{"mean resid_post layer=0 from=other row=15:"}, {"mean resid_post layer=0 from=other row=15:"}},
    {{"mean mlp_out from=longer"}, {"mean mlp_out from=longer"}},
    {{"uniform pattern layer=1 head=0"}, {"uniform pattern layer=1 head=0"}},
    {{"permute pattern seed=3 layer=0"}, {"permute pattern seed=3 layer=0"}},
    // What a run has no place for holds for the prompt.
    {{"freeze pattern", "scale mlp_out by=1.5"}, {"patch pattern from=prompt row=0:12", "scale mlp_out by=1.5"}},
    {{"patch pattern from=other row=5:"}, {"patch pattern from=other row=5:12"}},
    {{"patch k from=other"}, {"patch k from=other key=0:12"}},
    {{"patch v from=other key=-1"}, {"patch v from=other key=11"}},
    {{"patch q from=other row=*"}, {"patch q from=other row=0:12"}},
    {{"patch resid_pre from=longer layer=1 row=3,14"}, {"patch resid_pre from=longer layer=1 row=3,14"}},
    {{"patch pattern from=longer row=12:19 layer=0"}, {"patch pattern from=longer row=12:19 layer=0"}},
    {{"zero z row=19", "block edge row=:19 key=0", "mean attn_out layer=1", "patch k from=other layer=0"},
     {"zero z row=19", "block edge row=0:19 key=0", "mean attn_out layer=1 from=prompt",
      "patch k from=other layer=0 key=0:12"}},
};

TEST_P(Continued, RowsHaveTheBitsOfAWholeRunOfTheFinishedText) {
  const testing::Restore restore;
  const Made clean = generated({});
  int others = 0;
  for (const Written& written : kWritten) {
    SCOPED_TRACE(written.continued[0]);
    const Made made = generated(written.continued);
    ASSERT_EQ(std::ssize(made.ids), kRows);
    const Made expected = whole(made.ids, written.whole);
    EXPECT_TRUE(same_bits(made.logits, expected.logits));
    ASSERT_EQ(made.receipts.size(), expected.receipts.size());
    for (std::size_t e = 0; e < made.receipts.size(); ++e) {
      EXPECT_EQ(made.receipts[e].matched, expected.receipts[e].matched) << written.continued[e];
      EXPECT_EQ(made.receipts[e].changed, expected.receipts[e].changed) << written.continued[e];
      EXPECT_GT(made.receipts[e].matched, 0);
    }
    others += !same_bits(made.logits, clean.logits);
    // However the prompt is fed, and by however many threads.
    set_thread_count(3);
    EXPECT_TRUE(same_bits(made.logits, generated(written.continued, 5).logits));
    set_thread_count(1);
    EXPECT_TRUE(same_bits(made.logits, generated(written.continued, 1).logits));
  }
  EXPECT_GT(others, std::ssize(kWritten) * 3 / 4);
}

TEST_P(Continued, NullEditsMakeTheSameText) {
  const Made clean = generated({});
  for (const char* null : {"scale edge by=1", "scale z by=1", "freeze pattern", "patch v from=clean",
                           "patch resid_post from=clean row=*"}) {
    SCOPED_TRACE(null);
    const Made made = generated({null});
    EXPECT_EQ(made.ids, clean.ids);
    EXPECT_TRUE(same_bits(made.logits, clean.logits));
    EXPECT_GT(made.receipts[0].matched, 0);
    EXPECT_EQ(made.receipts[0].changed, 0);
  }
}

// Refused before anything is made.
TEST_P(Continued, WhatCannotBeIsRefused) {
  const auto refused = [&](const std::vector<std::string>& edits, const std::vector<std::string>& words) {
    SCOPED_TRACE(edits[0]);
    expect_error(ErrorCode::usage, words, [&] { ContinuedText(model_, prompt_, runs_, parsed(edits), kContinuation); });
  };
  refused({"zero z row=20"}, {"there is no row 20"});
  refused({"zero z row=-13"}, {"there is no row -13"});
  refused({"zero v key=5:21"}, {"there is no key 21"});
  refused({"block edge row=13 key=14"}, {"matches nothing"});
  refused({"freeze pattern row=12"}, {"the run 'clean' has no position 12"});
  refused({"patch z from=other row=11:13"}, {"the run 'other' has no position 12"});
  refused({"patch z from=longer"}, {"has 23 tokens and this one 12"});
  refused({"patch z from=longer row=2,13:"}, {"has 23 tokens and this one 12"});
  refused({"zero z row=14:", "scale z by=2 row=19"}, {"write the same cell"});
  for (std::int64_t layer = 0; layer < c_.layers; ++layer)
    if (c_.window[layer] > 0 && c_.window[layer] < kPrompt)
      refused({fmt::format("block edge layer={} row=12: key=0", layer)}, {"matches nothing"});
  expect_error(ErrorCode::usage, {"at most 1048576 tokens"}, [&] {
    ContinuedText(model_, prompt_, runs_, parsed({"zero z"}), {.rows = std::int64_t{1} << 40, .planned_length = 0});
  });
}

std::vector<std::string> names(bool two_texts) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(testing::families_folder()))
    if (std::filesystem::exists(entry.path() / "expected.safetensors") &&
        std::filesystem::exists(entry.path() / "expected_encoder.safetensors") == two_texts &&
        Model::load(entry.path()).config().causal)
      names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Every, Continued, ::testing::ValuesIn(names(false)),
                         [](const auto& info) { return info.param; });

// Of an encoder-decoder: `patch` of the source and of what was made of it.
class ContinuedTwo : public ::testing::TestWithParam<std::string> {};

TEST_P(ContinuedTwo, RowsHaveTheBitsOfAWholeRunOfTheFinishedText) {
  const Model model = Model::load(testing::families_folder() / GetParam());
  const ModelConfig& c = model.config();
  const auto source = testing::some_ids(kPrompt, c.vocabulary);
  const std::map<std::string, std::vector<std::int32_t>> runs = {
      {"other", testing::some_ids(kPrompt, c.vocabulary, 2)}};
  const Continuation continuation{.rows = kMade, .planned_length = kMade + 1};
  const Written written[] = {
      {{"block edge attention=cross key=4"}, {"block edge attention=cross key=4"}},
      {{"block edge attention=cross row=2: key=-3:"}, {"block edge attention=cross row=2:9 key=9:12"}},
      {{"scale edge by=0.5 attention=encoder key=3"}, {"scale edge by=0.5 attention=encoder key=3"}},
      {{"zero z attention=cross layer=1 head=0"}, {"zero z attention=cross layer=1 head=0"}},
      {{"zero z attention=encoder row=-1", "zero v key=-1", "block edge attention=cross row=4 key=0"},
       {"zero z attention=encoder row=11", "zero v key=0", "block edge attention=cross row=4 key=0"}},
      {{"zero mlp_out row=3:"}, {"zero mlp_out row=3:9"}},
      {{"mean v attention=encoder key=2"}, {"mean v attention=encoder key=2"}},
      {{"uniform pattern layer=0"}, {"uniform pattern layer=0"}},
      {{"patch k from=other attention=encoder"}, {"patch k from=other attention=encoder"}},
      {{"patch attn_out from=other attention=cross"}, {"patch attn_out from=other attention=cross row=0"}},
  };
  for (const Written& one : written) {
    SCOPED_TRACE(one.continued[0]);
    const auto placed = [](const std::vector<std::string>& texts) {
      std::vector<PlacedEdit> edits;
      for (const std::string& text : texts) edits.push_back(parse_placed_edit(text));
      return edits;
    };
    ContinuedTwoTexts continued(model, source, runs, placed(one.continued), continuation);
    State state(c, 1, continuation.planned_length);
    set_source(model, state, encode(*model.encoder(), source, continued.source_tap()).view());
    const Made made = make(model, state, {c.decoder_start}, &continued);
    ASSERT_EQ(std::ssize(made.ids), kMade);
    for (const std::int64_t row : {kMade - 1, std::int64_t{4}, std::int64_t{0}}) {
      const TwoTextExperiment experiment(
          model, {.source = source, .target = made.ids, .runs = runs, .edits = placed(one.whole), .row = row}, false);
      const PatchResult whole = patch(experiment);
      const auto first = made.logits.begin() + row * c.vocabulary;
      EXPECT_TRUE(same_bits(whole.after, {first, first + c.vocabulary}));
      for (std::size_t e = 0; e < made.receipts.size(); ++e) {
        EXPECT_EQ(made.receipts[e].matched, whole.receipts[e].matched) << one.continued[e];
        EXPECT_EQ(made.receipts[e].changed, whole.receipts[e].changed) << one.continued[e];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ContinuedTwo, ::testing::ValuesIn(names(true)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace regard
