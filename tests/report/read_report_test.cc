#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "report/head_grid.h"
#include "report/read_result.h"
#include "report/row_summary.h"
#include "support/errors.h"
#include "support/plain_page.h"

namespace regard {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// "When Mary gave it 漢", read by heads 0 and 2 of layers 3 and 10; the row is the last, the sink the first.
ReadResult sample_reading() {
  ReadResult result;
  result.model = {.name = "tiny", .family = "llama", .config = ModelConfig{}};
  result.model.config->layers = 12;
  for (const char* text : {"When", " Mary", " gave", " it", " \xe6", "\xbc\xa2"}) result.tokens.push_back({7, text});
  Reading& reading = result.reading;
  reading.request.layers = {3, 10};
  reading.request.heads = {0, 2};
  reading.request.rows = {5};
  reading.tokens = 6;
  const float weights[4][6] = {{0.9f, 0.05f, 0.05f, 0, 0, 0},
                               {0.5f, 0.5f, 0, 0, 0, 0},
                               {0.1f, 0.83f, 0, 0, 0.04f, 0.03f},
                               {0.6f, 0, 0.2f, 0.2f, 0, 0}};
  reading.weights = Tensor<float, 4>({2, 2, 1, 6});
  std::copy_n(&weights[0][0], 24, reading.weights.data());
  reading.top_weight = Tensor<float, 4>({2, 2, 1, 3});
  reading.top_key = Tensor<std::int32_t, 4>({2, 2, 1, 3});
  for (std::int64_t i = 0; i < reading.top_key.size(); ++i) reading.top_key.data()[i] = -1;
  reading.top_key(1, 0, 0, 0) = 1;
  reading.top_weight(1, 0, 0, 0) = 0.83f;
  reading.column_sum = Tensor<float, 3>({2, 2, 6});
  reading.per_row[Statistic::entropy] = Tensor<float, 3>({2, 2, 6});
  reading.per_row[Statistic::entropy](1, 1, 5) = kNan;
  reading.mean[Statistic::entropy] = Tensor<float, 2>({2, 2});
  reading.mean[Statistic::entropy](1, 0) = 1.25f;
  result.asked = {Statistic::entropy, Statistic::column_sum, Statistic::weights, Statistic::top};
  result.next = {{{9, " Mary"}, 12.5f, std::log(0.92)}};
  result.sink = AttentionSink{0, 0.75, 0.525};
  return result;
}

TEST(RowSummary, SharesAreWithoutTheSink) {
  const ReadResult result = sample_reading();
  const View<const float, 4> weights = result.reading.weights.view();
  const View<const float, 3> row(weights.data, {2, 2, 6});
  const RowSummary summary = summarise_row(row, 0);
  EXPECT_NEAR(summary.sink_share, (0.9 + 0.5 + 0.1 + 0.6) / 4, 1e-7);
  EXPECT_EQ(summary.share[0], 0);
  EXPECT_NEAR(summary.share[1], (0.05 + 0.5 + 0.83) / 1.9, 1e-6);
  double sum = 0;
  for (const double share : summary.share) sum += share;
  EXPECT_NEAR(sum, 1, 1e-12);
  ASSERT_EQ(summary.strongest.size(), 4u);
  EXPECT_EQ(summary.strongest[0].key, 1);
  EXPECT_EQ(summary.strongest[0].layer, 1);
  EXPECT_EQ(summary.heads[3].key, 2);  // the first of equals
  EXPECT_EQ(summary.heads[0].sink, 0.9f);

  const RowSummary with = summarise_row(row, std::nullopt);
  EXPECT_EQ(with.sink_share, 0);
  EXPECT_EQ(with.strongest[0].key, 0);
}

TEST(RowSummary, ARowThatReadsNothing) {
  const std::vector<float> zeros(8, 0.0f);
  const RowSummary summary = summarise_row({zeros.data(), {2, 2, 2}}, 0);
  EXPECT_TRUE(summary.strongest.empty());
  EXPECT_EQ(summary.share, (std::vector<double>{0, 0}));
}

TEST(ReadPage, SaysWhatWasRead) {
  const std::string text =
      testing::plain(read_page(sample_reading(), {.width = 80, .coloured = false, .statistics = true}));
  for (const char* part : {"next token", "\" Mary\"   92.0 %", "When Mary gave it 漢", "sink  0 \"When\" took 52.5 %",
                           "layer 10 head 0: \"\\xBC\\xA2\" (漢) <- \" Mary\" 0.83", "layer 3 head 2: ", "entropy",
                           "10.0 1.25", "only: column_sum"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  // The bars under the text: nothing under the sink, the most under " Mary".
  EXPECT_NE(text.find("\n    █████"), std::string::npos) << text;
}

TEST(ReadPage, SaysWhereATokenStandsThatComesTwice) {
  ReadResult result = sample_reading();
  result.tokens[3].bytes = " Mary";  // as position 1
  std::string text = testing::plain(read_page(result, {.width = 100, .coloured = false}));
  EXPECT_NE(text.find("layer 10 head 0: 5 \"\\xBC\\xA2\" (漢) <- 1 \" Mary\" 0.83"), std::string::npos) << text;
  EXPECT_NE(text.find("A 1 \" Mary\"  B 2 \" gave\""), std::string::npos) << text;
  text = testing::plain(read_page(sample_reading(), {.width = 100, .coloured = false}));
  EXPECT_NE(text.find("A \" Mary\"  B \" gave\""), std::string::npos) << text;
}

// WordPiece has no spaces of its own.
TEST(ReadPage, WritesWordsApart) {
  ReadResult result = sample_reading();
  const char* pieces[] = {"[CLS]", "un", "believable", "cats", ".", "[SEP]"};
  for (int i = 0; i < 6; ++i) result.tokens[i] = {7, pieces[i], i != 0 && i != 2};
  result.model.config->causal = false;
  result.next_row = 5;
  const std::string text = testing::plain(read_page(result, {.width = 100, .coloured = false}));
  EXPECT_NE(text.find("[CLS] unbelievable cats . [SEP]"), std::string::npos) << text;
  EXPECT_NE(text.find("in place of \"[SEP]\"  position 5"), std::string::npos) << text;
  EXPECT_EQ(text.find("next token"), std::string::npos) << text;
}

TEST(ReadPage, ShowsWhatWasChanged) {
  ReadResult result = sample_reading();
  result.edits = {{"zero z layer=3", {12, 9, 12}}};
  const std::string text = testing::plain(read_page(result, {.width = 100, .coloured = false}));
  EXPECT_NE(text.find("zero z layer=3   12 cells named, 9 changed"), std::string::npos) << text;
}

TEST(ReadPage, FitsAnyWidth) {
  for (int width = 20; width < 120; width += 7)
    for (const Line& line : read_page(sample_reading(), {.width = width}).lines)
      EXPECT_LE(columns(line), width) << terminal_text(line, Colours::none);
}

TEST(ReadPage, TheFirstRowHasNoSinkButItself) {
  ReadResult result = sample_reading();
  result.reading.request.rows = {0};
  const std::string text = testing::plain(read_page(result, {}));
  EXPECT_EQ(text.find("sink  "), std::string::npos) << text;
}

TEST(ReadPage, NeedsWeights) {
  ReadResult result = sample_reading();
  result.reading.weights = {};
  testing::expect_error(ErrorCode::usage, {"weights"}, [&] { read_page(result, {}); });
}

TEST(HeadGrid, ManyLayersAreFoldedAndLettersFollowTheText) {
  std::vector<std::int64_t> layers(100), heads(12);
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < heads.size(); ++i) heads[i] = static_cast<std::int64_t>(i);
  std::vector<std::string> labels;
  for (int i = 0; i < 40; ++i) labels.push_back("\"w" + std::to_string(i) + '"');
  std::vector<HeadRead> reads;
  for (std::int64_t l = 0; l < 100; ++l)
    for (std::int64_t h = 0; h < 12; ++h)
      reads.push_back({l, h, (l * 12 + h) % 40, 0.05f + 0.001f * static_cast<float>(l * 9)});
  Page page;
  add_head_grid(page, {.layers = layers, .heads = heads, .labels = labels, .reads = reads, .width = 60});
  int grid_lines = 0;
  for (const Line& line : page.lines) {
    EXPECT_LE(columns(line), 60) << terminal_text(line, Colours::none);
    grid_lines += terminal_text(line, Colours::none).starts_with("head ");
  }
  EXPECT_EQ(grid_lines, 24);  // 100 layers in two blocks
  const std::string text = testing::plain(page);
  EXPECT_NE(text.find("A \"w"), std::string::npos);
  EXPECT_NE(text.find("+ another"), std::string::npos);  // more positions than letters
}

TEST(ReadJson, HoldsWhatWasAsked) {
  Output out = Output::to_memory();
  write_json(out, sample_reading());
  out.finish();
  const auto document = nlohmann::json::parse(out.text());
  EXPECT_EQ(document["verb"], "read");
  EXPECT_EQ(document["layers"], (std::vector<int>{3, 10}));
  EXPECT_EQ(document["weights"][1][0][0].size(), 6u);
  EXPECT_EQ(static_cast<float>(document["weights"][1][0][0][1].get<double>()), 0.83f);
  EXPECT_TRUE(document["entropy"][1][1][5].is_null());
  EXPECT_EQ(document["top"].size(), 4u);
  EXPECT_EQ(document["top"][2]["layer"], 10);
  EXPECT_EQ(document["top"][2]["reads"].size(), 1u);
  EXPECT_EQ(document["top"][0]["reads"].size(), 0u);
  EXPECT_FALSE(document.contains("lse"));
  EXPECT_FALSE(document.contains("resid"));
  EXPECT_EQ(document["tokens"][4]["text"], " \\xE6");
  EXPECT_EQ(document["tokens"][4]["bytes"], "20e6");
  EXPECT_EQ(document["attention_sink"]["position"], 0);
  EXPECT_EQ(document["mean"]["entropy"][1][0], 1.25);
}

// The sample with what its last row says on the way, in a model of one layer and two heads.
ReadResult with_answers() {
  ReadResult result = sample_reading();
  Reading& reading = result.reading;
  reading.request.candidates = 2;
  reading.request.against = 8;
  reading.lens = {{{.top = {{4, 2.0f, -0.25f}, {9, 1.0f, -1.25f}}, .final = {9, 1.0f, -1.25f}, .rank = 1}},
                  {{.top = {{9, 3.0f, -0.125f}, {4, 0.5f, -2.625f}}, .final = {9, 3.0f, -0.125f}, .rank = 0}}};
  reading.direct_token = {9};
  DirectEffects& direct = reading.direct;
  direct.embedding = Tensor<double, 1>({1});
  direct.bias = Tensor<double, 1>({1});
  direct.total = Tensor<double, 1>({1});
  direct.heads = Tensor<double, 3>({1, 2, 1});
  direct.attention = Tensor<double, 2>({1, 1});
  direct.attention_bias = Tensor<double, 2>({1, 1});
  direct.mlp = Tensor<double, 2>({1, 1});
  direct.embedding(0) = 0.125;
  direct.heads(0, 1, 0) = direct.attention(0, 0) = -2.5;
  direct.mlp(0, 0) = 4;
  direct.total(0) = 1.625;
  result.bytes_of = {{4, " the"}, {8, " John"}, {9, " Mary"}};
  result.asked = {Statistic::lens, Statistic::direct};
  return result;
}

TEST(ReadJson, HoldsTheAnswers) {
  Output out = Output::to_memory();
  write_json(out, with_answers());
  out.finish();
  const auto document = nlohmann::json::parse(out.text());
  ASSERT_EQ(document["lens"].size(), 2u);
  const auto& first = document["lens"][0][0];
  EXPECT_EQ(first["top"][0]["text"], " the");
  EXPECT_EQ(first["top"][1]["logit"], 1.0);
  EXPECT_EQ(first["final"]["id"], 9);
  EXPECT_EQ(first["final"]["text"], " Mary");
  EXPECT_EQ(first["final"]["logprob"], -1.25);
  EXPECT_EQ(first["final"]["rank"], 1);
  const auto& direct = document["direct"];
  EXPECT_EQ(direct["token"][0]["text"], " Mary");
  EXPECT_EQ(direct["against"]["text"], " John");
  EXPECT_EQ(direct["heads"][0][1][0], -2.5);
  EXPECT_EQ(direct["mlp"][0][0], 4);
  EXPECT_EQ(direct["attention"][0][0], -2.5);
  EXPECT_EQ(direct["total"][0], 1.625);
}

TEST(ReadPage, ShowsTheAnswers) {
  const std::string text =
      testing::plain(read_page(with_answers(), {.width = 80, .coloured = false, .statistics = true}));
  for (const char* part : {"after each layer", "embedding", "layer 0 ", "\" the\"", "88.2 %", "written by",
                           "the logit of \" Mary\" less that of \" John\", 1.6", "layer 0 feed-forward    +4.000",
                           "layer 0 head 1          -2.500"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_LT(text.find("feed-forward"), text.find("head 1          -2.5"));  // the strongest first
  for (int width = 20; width < 120; width += 7)
    for (const Line& line : read_page(with_answers(), {.width = width}).lines) EXPECT_LE(columns(line), width);
}

TEST(ReadCsv, NeedsWeightsAndHoldsThem) {
  ReadResult result = sample_reading();
  Output out = Output::to_memory();
  write_csv(out, result);
  out.finish();
  EXPECT_NE(out.text().find("10,0,5,\"\\xBC\\xA2\",1,\" Mary\",0.829999983\r\n"), std::string::npos);
  result.asked = {Statistic::entropy};
  testing::expect_error(ErrorCode::usage, {"weights"}, [&] {
    Output none = Output::to_memory();
    write_csv(none, result);
  });
}

}  // namespace
}  // namespace regard
