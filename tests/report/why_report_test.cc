#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "report/patch_result.h"
#include "report/why_result.h"
#include "support/plain_page.h"

namespace regard {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// "When Mary saw the 漢 to", read by the last: 漢 is two tokens; the first position is the sink.
WhyReport sample_why(bool contrast = false, MetricKind kind = MetricKind::diff) {
  WhyReport report;
  report.model = {.name = "tiny", .family = "llama", .config = ModelConfig{}};
  report.model.config->layers = 2;
  report.model.config->heads = 3;
  for (const char* text : {"When", " Mary", " saw", " the", " \xe6", "\xbc\xa2", " to"})
    report.tokens.push_back({7, text});
  report.by = {.metric = {.kind = kind, .token = 1, .against = 2},
               .text = "diff ' Mary' ' John'",
               .token = " Mary",
               .against = {}};
  if (kind == MetricKind::diff) report.by.against = " John";
  if (is_divergence(kind)) report.by = {.metric = {.kind = kind}, .text = "kl", .token = {}, .against = {}};
  WhyResult& why = report.why;
  why.row = 6;
  why.seen = 7;
  why.base = 4.25;
  why.attention = {0.5, 0.02, 0.06, 0.3, 0.04, 0.05, 0.03};
  why.rollout = {0.7, 0.1, 0.1, 0.05, 0.03, 0.01, 0.01};
  why.norm_weighted = {0.1, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1};
  why.hide_from_last = {-9, -2, 0, 0.01, 0.5, 0.25, kNone};
  why.hide_from_all = {-12, -4, 1.5, 0.0625, 0.5, 0, kNone};
  if (contrast) {
    why.contrast = -1.5;
    why.keys_only = {0, 0, 0, 0, 0, 0, 0};
    why.values_only = {0, -3, 0, 0, 0, 0, 0.5};
    why.both = {0, -3.5, 0, 0, 0, 0, 0.25};
    report.contrast_tokens = report.tokens;
    report.contrast_tokens[1] = {8, " <John>"};
  }
  why.zero_z = Tensor<double, 2>({2, 3});
  const double heads[] = {-0.5, 0, 2, -4, 1e-5, 0.1};
  std::copy_n(heads, 6, why.zero_z.data());
  why.what_ifs = 18;
  why.receipts = {{"block edge row=6 key=S", {36, 30, 36}}, {"zero z layer=L head=H", {42, 40, 42}}};
  report.next = {{{1, " Mary"}, 12.5f, std::log(0.92)}};
  report.sink = AttentionSink{0, 0.75, 0.5};
  report.seconds = 1.5;
  return report;
}

// Sentences may be broken anywhere between words.
std::string one_line(std::string text) {
  std::string joined;
  for (const char c : text) {
    if (c != '\n' && c != ' ')
      joined += c;
    else if (!joined.ends_with(' '))
      joined += ' ';
  }
  return joined;
}

template <typename Report>
std::string written(const Report& report, void (*write)(Output&, const Report&)) {
  Output out = Output::to_memory();
  write(out, report);
  out.finish();
  return out.text();
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(EffectWords, Numbers) {
  EXPECT_EQ(signed_number(1.2345), "+1.234");
  EXPECT_EQ(signed_number(-0.0213), "-0.021");
  EXPECT_EQ(signed_number(0), "0");
  EXPECT_EQ(signed_number(-0.0), "0");
  EXPECT_EQ(signed_number(3e-5), "+3e-05");
  EXPECT_EQ(signed_number(-49000), "-49000");
  EXPECT_EQ(signed_number(kNone), "–");
  EXPECT_EQ(plain_number(2), "2.000");
}

TEST(EffectWords, WhatWorksForTheAnswer) {
  for (const MetricKind kind :
       {MetricKind::logit, MetricKind::logprob, MetricKind::diff, MetricKind::prob, MetricKind::cosine})
    EXPECT_EQ(support(kind, -2), 2);
  for (const MetricKind kind : {MetricKind::rank, MetricKind::kl, MetricKind::tvd, MetricKind::jsd})
    EXPECT_EQ(support(kind, 2), 2);
}

TEST(RankCorrelation, OfKnownOrders) {
  const double up[] = {1, 2, 3, 4}, same[] = {10, 20, 21, 400}, down[] = {4, 3, 2, 1}, flat[] = {5, 5, 5, 5};
  EXPECT_DOUBLE_EQ(rank_correlation(up, same), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(up, down), -1);
  EXPECT_TRUE(std::isnan(rank_correlation(up, flat)));
  EXPECT_TRUE(std::isnan(rank_correlation(std::span(up).first(2), std::span(up).first(2))));
  // Ties share their mean rank: (1, 2.5, 2.5, 4) against (1, 2, 3, 4): 4.5 / sqrt(4.5 * 5).
  const double tied[] = {1, 2, 2, 3};
  EXPECT_DOUBLE_EQ(rank_correlation(tied, up), 4.5 / std::sqrt(4.5 * 5));
}

TEST(WhyFindings, LeaveTheSinkOut) {
  const WhyFindings found = find_out(sample_why());
  EXPECT_EQ(found.sink, 0);
  EXPECT_EQ(found.ranked, (std::vector<std::int64_t>{1, 2, 4, 3, 5}));
  EXPECT_EQ(found.largest, 4);
  ASSERT_EQ(found.disagreements.size(), 2u);
  EXPECT_EQ(found.disagreements[0].position, 3);
  EXPECT_EQ(found.disagreements[0].kind, Disagreement::read_not_used);
  EXPECT_EQ(found.disagreements[0].attention_rank, 1);
  EXPECT_EQ(found.disagreements[0].share_of_largest, 0.0625 / 4);
  EXPECT_EQ(found.disagreements[1].position, 1);
  EXPECT_EQ(found.disagreements[1].kind, Disagreement::used_not_read);
  EXPECT_EQ(found.disagreements[1].attention_rank, 5);

  WhyReport no_sink = sample_why();
  no_sink.sink.reset();
  EXPECT_EQ(find_out(no_sink).largest, 12);
  no_sink.sink = AttentionSink{6, 0.5, 0.5};  // the row itself: nothing to leave out
  EXPECT_FALSE(find_out(no_sink).sink);
}

TEST(WhyFindings, AnEvenShareIsNeitherALotNorLittle) {
  WhyReport report = sample_why();
  report.why.attention = {0.5, 0.1, 0.1, 0.1, 0.1, 0.1, 0};
  EXPECT_TRUE(find_out(report).disagreements.empty());
  report.why.attention = {0.5, 0.09, 0.1, 0.12, 0.1, 0.09, 0};  // nor is a little more or less
  EXPECT_TRUE(find_out(report).disagreements.empty());
}

TEST(WhyFindings, WhereNothingMattersNothingIsSaid) {
  WhyReport report = sample_why();
  std::fill_n(report.why.hide_from_all.begin(), 6, 0.0);
  EXPECT_TRUE(find_out(report).disagreements.empty());
  EXPECT_EQ(find_out(report).largest, 0);
}

TEST(WhyPage, SaysWhatItDependsOn) {
  const std::string text = one_line(testing::plain(why_page(sample_why(), {.width = 100, .coloured = false})));
  expect_parts(
      text,
      {"why \" Mary\" rather than \" John\"",
       "logit of \" Mary\" minus logit of \" John\" = 4.250, after \" to\" (position 6)", "When Mary saw the 漢 to",
       "0 \"When\" is the sink: heads put 50.0 % of their attention there", "hiding it: -12.000",
       "3 \" the\" is read a lot (30.0 %, place 1), but hiding it changes next to nothing: +0.062",
       "1 \" Mary\" is read little (2.0 %, place 5), but hiding it decides: -4.000", "hiding it hurts the answer",
       "removing it helps it", "layer 1 head 0: -4.000", "18 what-ifs in 1.5 s", "\"\\xBC\\xA2\" (漢) 0"});
  EXPECT_EQ(text.find("both"), std::string::npos) << text;
}

TEST(WhyPage, WithoutColourBarsTellTheSign) {
  const std::string text = testing::plain(why_page(sample_why(), {.width = 80, .coloured = false}));
  // Under " Mary" the highest bars, under " saw" the other kind, under the sink nothing.
  expect_parts(text, {"When Mary saw the 漢 to\n    █████▒▒▒▒"});
}

TEST(WhyPage, InColourTheSignIsAHue) {
  const Page page = why_page(sample_why(), {.width = 80});
  bool warm = false, cool = false;
  for (const Line& line : page.lines) {
    for (const Piece& piece : line) {
      if (piece.text == " Mary" && piece.style.heat == 1) warm |= !piece.style.cool;
      if (piece.text == " saw" && piece.style.heat == 0.375) cool |= piece.style.cool;
      if (piece.text == "When") {
        EXPECT_EQ(piece.style.heat, 0);
        EXPECT_TRUE(piece.style.faint);
      }
    }
  }
  EXPECT_TRUE(warm);
  EXPECT_TRUE(cool);
}

TEST(WhyPage, OfADivergenceHasOneHue) {
  WhyReport report = sample_why(false, MetricKind::kl);
  for (double& effect : report.why.hide_from_all) effect = std::fabs(effect);
  for (std::int64_t i = 0; i < 6; ++i) report.why.zero_z.data()[i] = std::fabs(report.why.zero_z.data()[i]);
  const Page page = why_page(report, {});
  for (const Line& line : page.lines)
    for (const Piece& piece : line) EXPECT_FALSE(piece.style.cool) << piece.text;
  expect_parts(testing::plain(page), {"what the next token depends on", "hiding it changes the distribution"});
}

TEST(WhyPage, FitsAnyWidth) {
  for (const bool contrast : {false, true}) {
    for (int width = 40; width <= 120; ++width) {
      const Page page = why_page(sample_why(contrast), {.width = width, .coloured = width % 2 == 0});
      for (const Line& line : page.lines) EXPECT_LE(columns(line), width) << terminal_text(line, Colours::none);
      // The first column of numbers is always there, and no number is cut off.
      const std::string text = testing::plain(page);
      expect_parts(text, {"hide all", "-4.000"});
      if (width >= 60) expect_parts(text, {"attention"});
    }
  }
  expect_parts(testing::plain(why_page(sample_why(true), {.width = 120})),
               {"rollout", "norm-w.", "keys", "values", "both", "-3.500"});
}

TEST(WhyPage, NothingMatters) {
  WhyReport report = sample_why();
  std::fill_n(report.why.hide_from_all.begin(), 6, 0.0);
  for (std::int64_t i = 0; i < 6; ++i) report.why.zero_z.data()[i] = 0;
  const std::string text = one_line(testing::plain(why_page(report, {})));
  expect_parts(text, {"Hiding any token changes nothing at all", "Setting any head to 0 changes nothing at all"});
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

// Positions on both sides of the row are compared.
TEST(WhyPage, OfRowsThatReadBothWays) {
  WhyReport report = sample_why();
  report.model.config->causal = false;
  report.why.row = 3;
  report.why.hide_from_all[6] = -6;
  const WhyFindings found = find_out(report);
  EXPECT_EQ(found.ranked, (std::vector<std::int64_t>{6, 1, 2, 4, 5}));
  const std::string text = one_line(testing::plain(why_page(report, {})));
  expect_parts(text, {"hidden from all others", "in place of \" the\" (position 3)", "hide last"});
  expect_parts(written(report, write_why_html), {"hidden from all others", "(framed)"});
}

TEST(WhyPage, OfAMetricOfAllRows) {
  WhyReport report = sample_why(true);
  report.by = {.metric = {.kind = MetricKind::cosine, .ids = {4, 5}, .text = "a bank"},
               .text = "cosine 'a bank'",
               .token = {},
               .against = {}};
  report.next.clear();
  report.why.row = -1;
  for (double& effect : report.why.hide_from_last) effect = kNone;
  report.why.hide_from_all[6] = 0;
  EXPECT_EQ(find_out(report).ranked.size(), 6u);  // all but the sink
  const std::string text = one_line(testing::plain(why_page(report, {.width = 120})));
  expect_parts(text, {"what the likeness to \"a bank\" depends on", "that of \"a bank\" = 4.250",
                      "attention of all rows", "makes it less alike"});
  EXPECT_EQ(text.find("hide last"), std::string::npos);
  EXPECT_EQ(text.find("position -1"), std::string::npos);
  expect_parts(written(report, write_why_html), {"attention of all rows"});
  const auto document = nlohmann::json::parse(written<WhyReport>(report, write_json));
  EXPECT_TRUE(document["row"].is_null());
  EXPECT_TRUE(document["by_key"][2]["hide_from_last"].is_null());
}

TEST(WhyPage, OfTheFirstPosition) {
  WhyReport report = sample_why();
  report.why.row = 0;
  report.why.seen = 1;
  std::fill(report.why.hide_from_all.begin(), report.why.hide_from_all.end(), kNone);
  std::fill(report.why.hide_from_last.begin(), report.why.hide_from_last.end(), kNone);
  const std::string text = one_line(testing::plain(why_page(report, {})));
  expect_parts(text, {"there is nothing to hide"});
  EXPECT_EQ(text.find("the tokens it depends on"), std::string::npos);
  EXPECT_NE(written(report, write_why_html).find("there is nothing to hide"), std::string::npos);
}

TEST(WhyJson, IsWhatWasAgreed) {
  const auto document = nlohmann::json::parse(written<WhyReport>(sample_why(true), write_json));
  EXPECT_EQ(document["verb"], "why");
  EXPECT_EQ(document["metric"], "diff ' Mary' ' John'");
  EXPECT_EQ(document["base"], 4.25);
  EXPECT_EQ(document["contrast"], -1.5);
  EXPECT_EQ(document["what_ifs"], 18);
  EXPECT_EQ(document["seconds"], 1.5);
  WhyReport untimed = sample_why(true);  // as files are written
  untimed.seconds.reset();
  EXPECT_TRUE(nlohmann::json::parse(written<WhyReport>(untimed, write_json))["seconds"].is_null());
  EXPECT_EQ(testing::plain(why_page(untimed, {})).find(" in 1.5 s"), std::string::npos);
  ASSERT_EQ(document["by_key"].size(), 7u);
  const auto& mary = document["by_key"][1];
  EXPECT_EQ(mary["position"], 1);
  EXPECT_EQ(mary["text"], " Mary");
  EXPECT_EQ(mary["attention"], 0.02);
  EXPECT_EQ(mary["rollout"], 0.1);
  EXPECT_EQ(mary["norm_weighted"], 0.3);
  EXPECT_EQ(mary["hide_from_last"], -2);
  EXPECT_EQ(mary["hide_from_all"], -4);
  EXPECT_EQ(mary["keys_only"], 0);
  EXPECT_EQ(mary["values_only"], -3);
  EXPECT_EQ(mary["both"], -3.5);
  EXPECT_EQ(document["by_key"][4]["text"], " \\xE6");
  EXPECT_TRUE(document["by_key"][6]["hide_from_all"].is_null());
  EXPECT_TRUE(document["by_key"][6]["hide_from_last"].is_null());
  EXPECT_EQ(document["by_key"][6]["values_only"], 0.5);
  EXPECT_EQ(document["by_head"]["zero_z"], (nlohmann::json{{-0.5, 0.0, 2.0}, {-4.0, 1e-5, 0.1}}));
  EXPECT_EQ(document["receipts"][0],
            (nlohmann::json{{"edit", "block edge row=6 key=S"}, {"matched", 36}, {"changed", 30}}));
}

TEST(WhyJson, WithoutContrastAndHeadsHasNulls) {
  WhyReport report = sample_why();
  report.why.zero_z = {};
  report.sink.reset();
  const auto document = nlohmann::json::parse(written<WhyReport>(report, write_json));
  EXPECT_TRUE(document["contrast"].is_null());
  EXPECT_TRUE(document["attention_sink"].is_null());
  EXPECT_TRUE(document["by_head"]["zero_z"].is_null());
  for (const char* name : {"keys_only", "values_only", "both"}) EXPECT_TRUE(document["by_key"][1][name].is_null());
}

TEST(WhyCsv, HoldsALinePerPosition) {
  const std::string text = written<WhyReport>(sample_why(), write_csv);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);
  expect_parts(text, {"1,\" Mary\",0.02,0.1,0.3,-2,-4,,,,\r\n", "6,\" to\",0.03,0.01,0.1,,,,,,\r\n"});
}

// Of positions that were not hidden nothing is claimed, and nothing that would need them all.
TEST(WhyScreen, SaysWhatWasLeftOut) {
  WhyReport report = sample_why();
  WhyResult& why = report.why;
  why.screened = {-10, -3, 1, 0.25, 0.5, 0.125, 0};
  for (const std::size_t left_out : {3u, 4u, 5u}) why.hide_from_all[left_out] = why.hide_from_last[left_out] = kNone;
  const std::string page = testing::plain(why_page(report, {.width = 400}));
  expect_parts(page, {"only the 3 positions that attribution patching puts first were hidden"});
  const std::string html = written(report, write_why_html);
  expect_parts(html, {"only the 3 positions", "screened +0.250"});
  for (const std::string* text : {&page, &html})
    for (const char* part : {"here they disagree", "rank correlation", "nan"})
      EXPECT_EQ(text->find(part), std::string::npos) << part;
  const auto document = nlohmann::json::parse(written<WhyReport>(report, write_json));
  EXPECT_EQ(document["by_key"][3]["screened"], 0.25);
  EXPECT_TRUE(document["by_key"][3]["hide_from_all"].is_null());
  EXPECT_EQ(document["by_key"][1]["hide_from_all"], -4);
}

TEST(WhyHtml, NeedsNothingFromElsewhereAndEscapes) {
  WhyReport report = sample_why(true);
  report.tokens[2].bytes = "<script>\n\"&'";
  const std::string text = written(report, write_why_html);
  expect_parts(
      text, {"Why &quot; Mary&quot; rather than &quot; John&quot;", " 漢</span>", "&lt;script&gt;↵\n&quot;&amp;&#39;",
             "&lt;John&gt;", "layer 1 head 0: -4.000", "prefers-color-scheme:dark", "class=\"c8\""});
  for (const char* part : {"http", "src=", "url(", "@import", "<script>\n\"", "nan", "inf%"})
    EXPECT_EQ(text.find(part), std::string::npos) << part;
  // One frame for the position that reads in each of the two texts.
  std::size_t rows = 0;
  for (std::size_t at = text.find(" row\""); at != text.npos; at = text.find(" row\"", at + 1)) ++rows;
  EXPECT_EQ(rows, 2u);
}

PatchReport patched() {
  PatchReport report;
  report.model = {.name = "tiny", .family = "llama", .config = ModelConfig{}};
  for (const char* text : {"When", " \xe6", "\xbc\xa2"}) report.tokens.push_back({7, text});
  report.row = 2;
  report.by = {
      .metric = {.kind = MetricKind::logit, .token = 1}, .text = "logit ' Mary'", .token = " Mary", .against = {}};
  report.edits = {"block edge row=-1 key=1", "zero z layer=0"};
  report.patch.base = 2;
  report.patch.edited = 0.5;
  report.patch.contrast = -1;
  report.patch.recovery = 0.5;
  report.patch.receipts = {{6, 6, 6}, {3, 0, 3}};
  report.patch.before = {0, 2, 1, -1};
  report.patch.after = {0, 0.5, 3, 1};
  report.patch.divergence = {0.25, 0.125, 0.0625};
  report.before = {{{1, " Mary"}, 2, -0.4}, {{2, "\xbc"}, 1, -1.4}};
  report.after = {{{2, "\xbc"}, 3, -0.2}, {{3, "<b>"}, 1, -2.2}};
  return report;
}

TEST(PatchPage, SaysWhatHappened) {
  const std::string text = testing::plain(patch_page(patched(), {.width = 80}));
  expect_parts(text,
               {"logit of \" Mary\"\n", "2.000 -> 0.500   effect -1.500", "contrast -1.000   50.0 % of the way",
                "block edge row=-1 key=1   6 cells named, all changed", "zero z layer=0   3 cells named, none changed",
                "KL 0.250 nats   TVD 0.125   JSD 0.062 nats", "\"\\xBC\"", "before", "after", "\"<b>\""});
  EXPECT_EQ(text.find("exactly 0"), std::string::npos);
}

TEST(PatchPage, SaysWhenNothingHappened) {
  PatchReport report = patched();
  report.patch.edited = report.patch.base;
  report.patch.contrast = report.patch.base;
  report.patch.recovery.reset();
  report.patch.divergence = {};
  report.row = 1;
  expect_parts(testing::plain(patch_page(report, {})),
               {"2.000 -> 2.000   effect 0   after position 1", "The effect is exactly 0", "nothing to recover",
                "are the same, bit for bit"});
}

TEST(PatchPage, FitsAnyWidth) {
  for (int width = 40; width <= 120; ++width) {
    const Page page = patch_page(patched(), {.width = width});
    for (const Line& line : page.lines) EXPECT_LE(columns(line), width) << terminal_text(line, Colours::none);
    expect_parts(testing::plain(page), {"effect -1.500", "after\n", "JSD 0.062 nats"});
  }
}

TEST(PatchJson, IsWhatWasAgreed) {
  auto document = nlohmann::json::parse(written<PatchReport>(patched(), write_json));
  EXPECT_EQ(document["verb"], "patch");
  EXPECT_EQ(document["metric"], "logit ' Mary'");
  EXPECT_EQ(document["base"], 2);
  EXPECT_EQ(document["edited"], 0.5);
  EXPECT_EQ(document["effect"], -1.5);
  EXPECT_EQ(document["contrast"], -1);
  EXPECT_EQ(document["recovery"], 0.5);
  EXPECT_EQ(document["receipts"][1], (nlohmann::json{{"edit", "zero z layer=0"}, {"matched", 3}, {"changed", 0}}));
  EXPECT_EQ(document["next_before"][0]["text"], " Mary");
  EXPECT_EQ(document["next_after"][0]["text"], "\\xBC");
  EXPECT_EQ(document["kl"], 0.25);
  EXPECT_EQ(document["tvd"], 0.125);
  EXPECT_EQ(document["jsd"], 0.0625);
  EXPECT_FALSE(document.contains("next"));

  PatchReport report = patched();
  report.patch.contrast.reset();
  report.patch.recovery.reset();
  document = nlohmann::json::parse(written<PatchReport>(report, write_json));
  EXPECT_TRUE(document["contrast"].is_null());
  EXPECT_TRUE(document["recovery"].is_null());
}

TEST(PatchCsv, HoldsBothSides) {
  const std::string text = written<PatchReport>(patched(), write_csv);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);  // the head, and three tokens of two lists
  expect_parts(text, {"1,\" Mary\",2,", "2,\"\\xBC\",1,", "3,\"<b>\",-1,"});
}

TEST(CoolShade, IsReadableAndDistinct) {
  const auto luminance = [](Colour c) {
    const auto linear = [](int v) { return v <= 10 ? v / 255.0 / 12.92 : std::pow((v / 255.0 + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
  };
  for (const Background background : {Background::unknown, Background::light, Background::dark}) {
    for (double value = 0; value <= 1; value += 0.01) {
      const Shade s = shade(value, background, true);
      const double x = luminance(s.paper), y = luminance(s.ink);
      EXPECT_GE((std::max(x, y) + 0.05) / (std::min(x, y) + 0.05), 4.5) << value;  // the level AA of WCAG 2 for text
      if (value > 0.2) {
        EXPECT_GT(s.paper.blue, s.paper.red) << value;
      }
    }
  }
}

}  // namespace
}  // namespace regard
