#include "reading/request.h"

#include <gtest/gtest.h>

#include "reading/selection.h"
#include "reading/sink.h"
#include "tensor/buffer.h"
#include "tensor/error.h"

namespace regard {
namespace {

using Indices = std::vector<std::int64_t>;

// The error's code, message and hint as one line; empty when there was none.
template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return fmt::format("{}|{}|{}", static_cast<int>(e.code), e.message, e.hint);
  }
  return "";
}

TEST(Select, UnderstandsEveryForm) {
  EXPECT_EQ(select("5", 9, "row"), (Indices{5}));
  EXPECT_EQ(select("2:7", 9, "row"), (Indices{2, 3, 4, 5, 6}));
  EXPECT_EQ(select("-1", 9, "row"), (Indices{8}));
  EXPECT_EQ(select("1,4", 9, "row"), (Indices{1, 4}));
  EXPECT_EQ(select("*", 3, "row"), (Indices{0, 1, 2}));
  EXPECT_EQ(select("-3:", 9, "row"), (Indices{6, 7, 8}));
  EXPECT_EQ(select(":2", 9, "row"), (Indices{0, 1}));
  EXPECT_EQ(select(":-7", 9, "row"), (Indices{0, 1}));
  EXPECT_EQ(select("7:9", 9, "row"), (Indices{7, 8}));
  EXPECT_EQ(select("4,0:3,1", 9, "row"), (Indices{4, 0, 1, 2}));
  EXPECT_EQ(select(Indices{-1, 2, 8}, 9, "row"), (Indices{8, 2}));
}

TEST(Select, RefusesWhatIsNotThere) {
  for (const char* text : {"9", "-10", "3:10", "0:4,12", "9:"}) {
    const std::string error = error_of([&] { select(text, 9, "row"); });
    EXPECT_NE(error.find("there are 9 rows: 0 to 8"), std::string::npos) << text << ": " << error;
  }
  for (const char* text : {"", "a", "1;2", "1,", "1:2:3", "--1", "0x3", " 1", "1.5", "99999999999999999999"})
    EXPECT_NE(error_of([&] { select(text, 9, "row"); }).find("does not choose a row"), std::string::npos) << text;
  for (const char* text : {"5:5", "6:2"})
    EXPECT_NE(error_of([&] { select(text, 9, "head"); }).find("chooses no head"), std::string::npos) << text;
  EXPECT_NE(error_of([&] { select(Indices{4}, 4, "layer"); }).find("there is no layer 4"), std::string::npos);
  EXPECT_NE(error_of([&] { select("*", 0, "row"); }), "");
}

// Where something is to follow a prompt of 4, negative numbers count from the prompt's end.
TEST(Select, BeyondAPrompt) {
  EXPECT_EQ(select("-1", 9, "row", 4), (Indices{3}));
  EXPECT_EQ(select("-2:", 9, "row", 4), (Indices{2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(select(":-1,8", 9, "row", 4), (Indices{0, 1, 2, 8}));
  EXPECT_EQ(select("7:9", 9, "row", 4), (Indices{7, 8}));
  EXPECT_EQ(select("*", 9, "row", 4).size(), 9u);
  EXPECT_EQ(select("-1", 9, "row", 9), select("-1", 9, "row"));
  for (const char* text : {"9", "-5", "-5:", "4:10"})
    EXPECT_NE(error_of([&] {
                select(text, 9, "row", 4);
              }).find("there are 9 rows at most: 0 to 8, or -4 to -1 from the end of the prompt"),
              std::string::npos)
        << text;
}

TEST(Select, SaysWhatIsOpenEnded) {
  for (const char* text : {"*", ":", "3:", "1,-2:", "1:,4", "0,*"}) EXPECT_TRUE(open_ended(text)) << text;
  for (const char* text : {"5", "-1", ":3", "2:7", "1,4", ":-1,2:3"}) EXPECT_FALSE(open_ended(text)) << text;
}

TEST(Statistics, EveryNameIsUnderstood) {
  for (const StatisticInfo& s : statistics()) EXPECT_EQ(parse_statistics(s.name), std::vector<Statistic>{s.statistic});
  EXPECT_EQ(parse_statistics("top,lse,top"), (std::vector<Statistic>{Statistic::top, Statistic::lse}));
  EXPECT_EQ(parse_statistics("all").size() + 1, statistics().size());
  ModelConfig gemma;
  gemma.norm_place = NormPlace::around;  // what attention adds cannot be taken apart
  EXPECT_EQ(parse_statistics("all", &gemma).size() + 4, statistics().size());
  for (const char* text : {"", "entropi", "lse,", "LSE"}) {
    const std::string error = error_of([&] { parse_statistics(text); });
    EXPECT_NE(error.find("column_sum"), std::string::npos) << error;  // says which there are
  }
}

ModelConfig config() {
  ModelConfig c;
  c.layers = 4;
  c.heads = 6;
  c.kv_heads = 2;
  c.head_dim = c.value_dim = 8;
  c.width = c.embedding_width = 48;
  return c;
}

TEST(Resolve, FillsInWhatWasLeftOut) {
  const ReadingRequest r = resolve({}, config(), 10);
  EXPECT_EQ(r.layers, (Indices{0, 1, 2, 3}));
  EXPECT_EQ(r.heads, (Indices{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(r.rows, (Indices{9}));
  EXPECT_EQ(resolve({}, config(), 3).top, 3);
}

TEST(Resolve, RefusesWhatAFamilyDoesNotHave) {
  ModelConfig gemma = config();
  gemma.norm_place = NormPlace::around;
  ReadingRequest request;
  for (const Statistic statistic : {Statistic::mixing, Statistic::flow, Statistic::direct}) {
    request.statistics = {statistic};
    EXPECT_NE(error_of([&] { resolve(request, gemma, 10); }).find(info(statistic).name), std::string::npos);
  }
}

TEST(Resolve, RefusesWhatCannotBeRead) {
  const auto refused = [](auto change, std::int64_t tokens = 10) {
    ReadingRequest r;
    change(r);
    return error_of([&] { resolve(r, config(), tokens); });
  };
  EXPECT_NE(refused([](ReadingRequest& r) { r.layers = {4}; }).find("there is no layer 4"), std::string::npos);
  EXPECT_NE(refused([](ReadingRequest& r) { r.heads = {-7}; }).find("there is no head -7"), std::string::npos);
  EXPECT_NE(refused([](ReadingRequest& r) { r.rows = {10}; }).find("there are 10 rows"), std::string::npos);
  EXPECT_NE(refused([](ReadingRequest&) {}, 0), "");
  EXPECT_NE(refused([](ReadingRequest& r) { r.statistics = {}; }), "");
  EXPECT_NE(refused([](ReadingRequest& r) { r.top = 0; }), "");
  EXPECT_NE(refused([](ReadingRequest& r) { r.groups = {1}; }), "");  // given, but not asked for
  EXPECT_NE(refused([](ReadingRequest& r) { r.token = 1; }).find("direct"), std::string::npos);
  EXPECT_NE(refused([](ReadingRequest& r) {
              r.statistics = {Statistic::direct};
              r.against = 1;
            }),
            "");
  EXPECT_NE(refused([](ReadingRequest& r) {
              r.statistics = {Statistic::direct};
              r.token = 1 << 30;
            }).find("outside the vocabulary"),
            std::string::npos);
  EXPECT_NE(refused([](ReadingRequest& r) {
              r.statistics = {Statistic::lens};
              r.candidates = 0;
            }),
            "");
  const auto groups = [&](std::vector<std::int32_t> g) {
    return refused([&](ReadingRequest& r) {
      r.statistics = {Statistic::groups};
      r.groups = g;
    });
  };
  EXPECT_NE(groups({}).find("the text has 10"), std::string::npos);
  EXPECT_NE(groups(std::vector<std::int32_t>(10, -1)), "");
  EXPECT_NE(groups(std::vector<std::int32_t>(10, -2)), "");
  EXPECT_EQ(groups(std::vector<std::int32_t>(10, 0)), "");
}

// [1 layer, heads, T] column sums of heads that put `mass` on `key` from every later row and read the rest evenly.
Tensor<float, 3> columns(std::int64_t T, const std::vector<double>& mass, std::int64_t key) {
  Tensor<float, 3> sum({1, std::ssize(mass), T});
  for (std::int64_t h = 0; h < std::ssize(mass); ++h) {
    for (std::int64_t i = 0; i < T; ++i) {
      const double to_key = i >= key ? mass[h] : 0;
      for (std::int64_t j = 0; j <= i; ++j)
        sum(0, h, j) += static_cast<float>((1 - to_key) / static_cast<double>(i + 1) + (j == key ? to_key : 0));
    }
  }
  return sum;
}

// Of one layer without a window.
std::optional<AttentionSink> sink_of(const Tensor<float, 3>& column_sum) {
  ModelConfig config;
  config.window = {0};
  const std::int64_t layer = 0;
  return find_sink(column_sum.view(), config, std::span(&layer, 1));
}

TEST(FindSink, NamesThePositionThatManyHeadsRead) {
  const auto first = sink_of(columns(64, {0.9, 0.8, 0, 0.7}, 0));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->position, 0);
  EXPECT_EQ(first->share, 0.75);
  EXPECT_GT(first->mass, 0.5);
  const auto third = sink_of(columns(64, {0.9, 0.8, 0.9, 0.7}, 2));
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->position, 2);
}

TEST(FindSink, SeesNoneWhereThereIsNone) {
  for (std::int64_t T : {1, 2, 3, 5, 14, 64, 500}) EXPECT_FALSE(sink_of(columns(T, {0, 0, 0}, 0))) << T;
  EXPECT_FALSE(sink_of(columns(64, {0.9, 0, 0, 0, 0}, 0)));  // one head of five
  EXPECT_FALSE(sink_of(columns(64, {0.9, 0.9, 0.9}, 60)));   // too late to be one
}

}  // namespace
}  // namespace regard
