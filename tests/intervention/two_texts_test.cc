// What-ifs of encoder-decoders against plain runs with a tap written by hand, and the laws that edits obey.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "intervention/two_texts_why.h"
#include "model/source.h"
#include "support/errors.h"
#include "support/families.h"
#include "support/targets.h"
#include "support/tiny_model.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::int64_t kSource = 9, kTarget = 7;

// One change, said in plain words: which edges are cut, or which head's z is zeroed.
struct Change {
  Attention attention = Attention::cross;
  std::function<bool(std::int64_t row, std::int64_t key)> cut = {};
  std::int64_t layer = -1, head = -1;
};

class ByHand final : public Tap {
 public:
  ByHand(Change change, Attention here, std::int64_t heads, std::int64_t keys)
      : change_(std::move(change)), here_(here), heads_(heads), keys_(keys) {}

  bool wants(Site site, std::int64_t layer) const override {
    if (!change_.cut && layer == change_.layer)
      return (site == Site::z && change_.attention == here_) ||
             (site == Site::cross_z && change_.attention == Attention::cross && here_ == Attention::decoder);
    return false;
  }
  void at(Site site, std::int64_t, std::span<const Row> rows, View<float, 3> value) override {
    if ((site == Site::cross_z) != (change_.attention == Attention::cross)) return;
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::int64_t c = 0; c < value.shape[2]; ++c) value(static_cast<std::int64_t>(r), change_.head, c) = 0;
  }
  std::span<const EdgeEdit> edges(std::int64_t, std::span<const Row> rows) override {
    return change_.attention == here_ ? cut(rows) : std::span<const EdgeEdit>();
  }
  std::span<const EdgeEdit> cross_edges(std::int64_t, std::span<const Row> rows) override {
    return change_.attention == Attention::cross ? cut(rows) : std::span<const EdgeEdit>();
  }

 private:
  std::span<const EdgeEdit> cut(std::span<const Row> rows) {
    edges_.clear();
    if (!change_.cut) return {};
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::int64_t h = 0; h < heads_; ++h)
        for (std::int64_t key = 0; key < keys_; ++key)
          if (change_.cut(rows[r].position, key))
            edges_.push_back({static_cast<std::int64_t>(r), static_cast<std::int32_t>(h), key, key + 1});
    return edges_;
  }
  Change change_;
  Attention here_;
  std::int64_t heads_, keys_;
  std::vector<EdgeEdit> edges_;
};

class TwoTexts : public ::testing::TestWithParam<std::string> {
 protected:
  TwoTexts() : model_(Model::load(testing::families_folder() / GetParam())) {
    const testing::Expected expected(GetParam());
    source_ = expected.ids("source_ids");
    target_ = expected.ids("target_ids");
    other_.assign(source_.end() - kSource, source_.end());
    source_.resize(kSource);
    target_.resize(kTarget);
  }

  TwoTextRequest request(const std::vector<std::string>& edits = {}) const {
    TwoTextRequest request{.source = source_, .target = target_, .metric = kMetric};
    request.runs = {{"contrast", other_}, {"same", source_}};
    for (const std::string& edit : edits) request.edits.push_back(parse_placed_edit(edit));
    return request;
  }
  PatchResult patched(const std::vector<std::string>& edits) const {
    return patch(TwoTextExperiment(model_, request(edits), false));
  }

  // The metric of a run from the tokens of both texts.
  double by_hand(const Change& change, std::int64_t row) const {
    const Model& encoder = *model_.encoder();
    ByHand in_encoder(change, Attention::encoder, encoder.config().heads, kSource);
    ByHand in_decoder(change, Attention::decoder, model_.config().heads,
                      change.attention == Attention::cross ? kSource : kTarget);
    const Tensor<float, 2> encoded =
        encode(encoder, source_, change.attention == Attention::encoder ? &in_encoder : nullptr);
    State state(model_.config());
    set_source(model_, state, encoded.view());
    std::vector<float> logits = testing::all_logits(model_, state, target_, 3, 0,
                                                    change.attention == Attention::encoder ? nullptr : &in_decoder);
    const float* at = &logits[static_cast<std::size_t>(row * model_.config().vocabulary)];
    return static_cast<double>(at[kMetric.token]) - static_cast<double>(at[kMetric.against]);
  }

  static inline const Metric kMetric{.kind = MetricKind::diff, .token = 5, .against = 17};
  Model model_;
  std::vector<std::int32_t> source_, target_, other_;
};

TEST_P(TwoTexts, WhyIsWhatRunsByHandGive) {
  for (const std::int64_t row : {kTarget - 1, std::int64_t{3}}) {
    SCOPED_TRACE(row);
    const TwoTextWhy found = why(model_, {.source = source_, .target = target_, .metric = kMetric, .row = row});
    const double base = by_hand({}, row);
    EXPECT_EQ(found.base, base);
    const auto cut = [&](Attention attention, auto which) {
      return by_hand({.attention = attention, .cut = which}, row) - base;
    };
    int nonzero = 0;
    for (std::int64_t s = 0; s < kSource; ++s) {
      EXPECT_EQ(found.source.hide_from_last[s],
                cut(Attention::cross, [=](auto r, auto k) { return r == row && k == s; }));
      EXPECT_EQ(found.source.hide_from_all[s], cut(Attention::cross, [=](auto, auto k) { return k == s; }));
      EXPECT_EQ(found.source.hide_in_encoder[s],
                cut(Attention::encoder, [=](auto r, auto k) { return r != s && k == s; }));
      nonzero += found.source.hide_from_all[s] != 0 && found.source.hide_in_encoder[s] != 0;
    }
    EXPECT_EQ(nonzero, kSource);
    for (std::int64_t s = 0; s < kTarget; ++s) {
      if (s >= row) {
        EXPECT_TRUE(std::isnan(found.target.hide_from_last[s]));
        EXPECT_EQ(found.target.hide_from_all[s], 0);
        continue;
      }
      EXPECT_EQ(found.target.hide_from_last[s],
                cut(Attention::decoder, [=](auto r, auto k) { return r == row && k == s; }));
      EXPECT_EQ(found.target.hide_from_all[s],
                cut(Attention::decoder, [=](auto r, auto k) { return r > s && k == s; }));
    }
    for (const Attention attention : {Attention::encoder, Attention::decoder, Attention::cross}) {
      const Tensor<double, 2>& zero_z = found.zero_z[static_cast<int>(attention)];
      for (std::int64_t l = 0; l < zero_z.shape()[0]; ++l)
        for (std::int64_t h = 0; h < zero_z.shape()[1]; ++h)
          EXPECT_EQ(zero_z(l, h), by_hand({.attention = attention, .layer = l, .head = h}, row) - base);
    }
    EXPECT_EQ(found.what_ifs, 3 * kSource + 2 * row + found.zero_z[0].size() + 2 * found.zero_z[1].size());
  }
}

TEST_P(TwoTexts, AttentionIsTheMeanOfTheWeights) {
  testing::Recorder recorder(model_, kSource, "");
  State state(model_.config());
  set_source(model_, state, encode(*model_.encoder(), source_).view());
  testing::all_logits(model_, state, target_, 64, 0, &recorder);
  const auto seen = recorder.all();
  const std::int64_t L = model_.config().layers, H = model_.config().heads, row = 4;
  const TwoTextWhy found =
      why(model_, {.source = source_, .target = target_, .metric = kMetric, .row = row, .heads = false});
  for (const bool across : {false, true}) {
    const std::vector<double>& attention = across ? found.source.attention : found.target.attention;
    double whole = 0;
    for (std::int64_t s = 0; s < std::ssize(attention); ++s) {
      double mean = 0;
      for (std::int64_t l = 0; l < L; ++l)
        for (std::int64_t h = 0; h < H; ++h)
          mean += seen.at(std::to_string(l) +
                          (across ? ".cross_pattern"
                                  : ".pattern"))[static_cast<std::size_t>((h * kSource + row) * kSource + s)] /
                  static_cast<double>(L * H);
      EXPECT_EQ(attention[static_cast<std::size_t>(s)], mean);
      whole += mean;
    }
    EXPECT_NEAR(whole, 1, static_cast<double>(kSource) * 0x1p-24);
  }
  EXPECT_EQ(found.zero_z[0].size(), 0);
}

// One value per number: however many pass together, on however many threads.
TEST_P(TwoTexts, TheSameBitsInEveryBatch) {
  const auto all = [&](std::int64_t batch_rows) {
    const TwoTextWhy found =
        why(model_, {.source = source_, .target = target_, .metric = kMetric, .batch_rows = batch_rows});
    std::vector<double> values = found.source.hide_from_last;
    for (const auto* more : {&found.source.hide_from_all, &found.source.hide_in_encoder, &found.target.hide_from_all})
      values.insert(values.end(), more->begin(), more->end());
    for (const Tensor<double, 2>& more : found.zero_z)
      values.insert(values.end(), more.data(), more.data() + more.size());
    return values;
  };
  const std::vector<double> once = all(1024);
  for (const std::int64_t batch_rows : {1, 30}) EXPECT_TRUE(testing::same_bits(once, all(batch_rows)));
  testing::on_each_target([&](const std::string&) { EXPECT_TRUE(testing::same_bits(once, all(100))); });
}

TEST_P(TwoTexts, NullEditsDoNothingAtAll) {
  for (const char* edit :
       {"scale edge by=1 attention=encoder", "scale edge by=1 attention=decoder", "scale edge by=1 attention=cross",
        "scale z by=1 attention=encoder", "scale z by=1", "scale z by=1 attention=cross",
        "scale attn_out by=1 attention=cross", "patch z from=same attention=encoder", "patch z from=same",
        "patch z from=same attention=cross", "patch attn_out from=same attention=cross",
        "patch resid_post from=same attention=encoder", "freeze pattern attention=encoder", "freeze pattern"}) {
    SCOPED_TRACE(edit);
    const PatchResult result = patched({edit});
    EXPECT_EQ(result.edited, result.base);
    EXPECT_EQ(result.divergence.kl, 0);
    EXPECT_GT(result.receipts.at(0).matched, 0);
    EXPECT_EQ(result.receipts.at(0).changed, 0);
    EXPECT_TRUE(testing::same_bits(result.before, result.after));
  }
}

TEST_P(TwoTexts, AnotherSourcePatchedInWholeIsThatSource) {
  const std::int64_t last = model_.encoder()->config().layers - 1;
  const PatchResult result = patched({fmt::format("patch resid_post from=contrast attention=encoder layer={}", last)});
  ASSERT_TRUE(result.contrast);
  EXPECT_EQ(result.edited, *result.contrast);
  EXPECT_NE(result.edited, result.base);
  EXPECT_EQ(result.recovery, 0);
  // All that the decoder hears of the source.
  const PatchResult heard = patched({"patch attn_out from=contrast attention=cross"});
  EXPECT_EQ(heard.edited, *result.contrast);
}

// An edge cut before the softmax leaves what renormalising without it leaves: in the first layer, whose queries are
// those of the clean run.
TEST_P(TwoTexts, ACutEdgeOfTheSourceRenormalisesItsRow) {
  const auto pattern = [&](Change change) {
    struct Both final : Tap {
      Both(Tap& cut, Tap& look) : cut(cut), look(look) {}
      std::vector<Reader*> readers(std::int64_t l, std::span<const Row> rows) override { return look.readers(l, rows); }
      std::vector<Reader*> cross_readers(std::int64_t l, std::span<const Row> rows) override {
        return look.cross_readers(l, rows);
      }
      std::span<const EdgeEdit> cross_edges(std::int64_t l, std::span<const Row> rows) override {
        return cut.cross_edges(l, rows);
      }
      Tap &cut, &look;
    };
    ByHand cut(std::move(change), Attention::decoder, model_.config().heads, kSource);
    testing::Recorder recorder(model_, kSource, "");
    Both both(cut, recorder);
    State state(model_.config());
    set_source(model_, state, encode(*model_.encoder(), source_).view());
    testing::all_logits(model_, state, target_, 64, 0, &both);
    return recorder.all().at("0.cross_pattern");
  };
  const std::vector<float> clean = pattern({}),
                           cut = pattern({.cut = [](auto row, auto key) { return row == 5 && key == 2; }});
  for (std::int64_t h = 0; h < model_.config().heads; ++h) {
    const float *p = &clean[static_cast<std::size_t>((h * kSource + 5) * kSource)],
                *q = &cut[static_cast<std::size_t>((h * kSource + 5) * kSource)];
    const double left = 1.0 - p[2];
    for (std::int64_t s = 0; s < kSource; ++s)
      EXPECT_NEAR(q[s], s == 2 ? 0 : p[s] / left, 0x1p-22 * (1 / left)) << s;  // as for one text: laws_test.cc
  }
}

TEST_P(TwoTexts, ReceiptsCountCells) {
  const ModelConfig &c = model_.config(), &e = model_.encoder()->config();
  const PatchResult result =
      patched({"block edge attention=cross row=-1 key=2,3",
               "block edge attention=encoder row=0 key=1:", "block edge row=3:5 key=0 layer=1 head=1",
               "zero z attention=cross layer=0", "mean mlp_out attention=encoder"});
  const std::int64_t matched[] = {2 * c.layers * c.heads, (kSource - 1) * e.layers * e.heads, 2, kTarget * c.heads,
                                  kSource * e.layers};
  ASSERT_EQ(result.receipts.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(result.receipts[i].matched, matched[i]) << i;
    EXPECT_EQ(result.receipts[i].changed, matched[i]) << i;
  }
}

TEST_P(TwoTexts, WhatIsWrongIsNamed) {
  const auto refused = [&](std::vector<std::string> edits, std::vector<std::string> words) {
    testing::expect_error(ErrorCode::usage, words, [&] { patched(edits); });
  };
  refused({"block edge attention=sideways"}, {"attention=sideways"});
  refused({"block edge attention=cross attention=encoder"}, {"twice"});
  refused({"zero mlp_out attention=cross"}, {"cross", "mlp_out"});
  refused({"patch k from=contrast attention=cross"}, {"cross", "no k"});
  refused({fmt::format("block edge attention=cross key={}", kSource)}, {"key"});
  refused({fmt::format("block edge attention=cross row={}", kTarget)}, {"row"});
  refused({fmt::format("block edge attention=encoder row={}", kSource)}, {"row"});
  refused({"block edge row=1 key=3"}, {"matches nothing"});
  refused({"zero z attention=cross layer=0", "scale z by=2 attention=cross head=1"}, {"same cell"});
  refused({"patch z from=nowhere attention=cross"}, {"nowhere"});
  patched({"zero z layer=0", "zero z layer=0 attention=cross", "zero z layer=0 attention=encoder"});  // three cells
  testing::expect_error(ErrorCode::unsupported, {"embedding"}, [&] {
    TwoTextRequest wanted = request();
    wanted.metric = {.kind = MetricKind::cosine};
    const TwoTextExperiment experiment(model_, wanted, true);
  });
  EXPECT_EQ(to_string(parse_placed_edit("attention=cross block edge key=1")), "block edge attention=cross key=1");
  EXPECT_EQ(to_string(parse_placed_edit("zero z")), "zero z attention=decoder");
}

INSTANTIATE_TEST_SUITE_P(All, TwoTexts, ::testing::Values("t5", "t5_gated", "marian"),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace regard
