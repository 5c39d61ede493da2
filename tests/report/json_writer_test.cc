#include "report/json_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "support/targets.h"

namespace regard {
namespace {

template <typename Write>
std::string written(Write&& write) {
  Output out = Output::to_memory();
  JsonWriter json(out);
  write(json);
  out.finish();
  return out.text();
}

TEST(JsonWriter, NestsObjectsAndArrays) {
  const std::string text = written([](JsonWriter& json) {
    json.begin_object();
    json.member("a", std::int64_t{-7});
    json.key("b");
    json.begin_array();
    json.begin_array();
    json.end_array();
    json.begin_object();
    json.member("c", true);
    json.member("d", "e");
    json.end_object();
    json.null();
    json.end_array();
    json.key("f");
    json.begin_object();
    json.end_object();
    json.end_object();
    json.end_document();
  });
  EXPECT_EQ(nlohmann::json::parse(text), nlohmann::json::parse(R"({"a":-7,"b":[[],{"c":true,"d":"e"},null],"f":{}})"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(JsonWriter, EveryByteStringGivesValidText) {
  // All single bytes, all pairs of a lead byte and anything, and what looks like a character but is none.
  std::vector<std::string> texts = {"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf", "\xe0\x80\xaf",
                                    "a\xe4",        "\xe4\xbd",         ""};
  for (int a = 0; a < 256; ++a) {
    texts.push_back(std::string(1, static_cast<char>(a)));
    for (int b = 0; b < 256; ++b) texts.push_back({static_cast<char>(a), static_cast<char>(b)});
  }
  for (const std::string& text : texts) {
    const std::string json = written([&](JsonWriter& json) { json.string(text); });
    ASSERT_TRUE(nlohmann::json::accept(json)) << json;
  }
  EXPECT_EQ(written([](JsonWriter& json) { json.string("\xe4"); }), R"("\\xE4")");
  EXPECT_EQ(written([](JsonWriter& json) { json.string("漢\xe4\xbd"); }), R"("漢\\xE4\\xBD")");
}

TEST(JsonWriter, ValidTextComesBackAsItWas) {
  const std::string text = std::string("\0\x01\x1f\x7f", 4) + "\"\\/\b\f\n\r\t 漢字 👩‍👩‍👧 \xef\xbf\xbf";
  const std::string json = written([&](JsonWriter& json) { json.string(text); });
  EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), text);
}

TEST(JsonWriter, FloatsKeepEveryBit) {
  testing::Numbers numbers(1);
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1.0f,
                               0.1f,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::denorm_min()};
  while (values.size() < 20000) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(numbers.bits()));
    if (std::isfinite(value)) values.push_back(value);
  }
  const std::string json = written([&](JsonWriter& json) { json.numbers(std::span<const float>(values)); });
  std::vector<float> read;
  for (const auto& value : nlohmann::json::parse(json)) read.push_back(static_cast<float>(value.get<double>()));
  EXPECT_TRUE(testing::same_bits(values, read));
}

TEST(JsonWriter, WhatIsNotFiniteIsNull) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 2};
  EXPECT_EQ(written([&](JsonWriter& json) { json.numbers(std::span<const float>(values)); }), "[null,null,null,2]");
  EXPECT_EQ(written([&](JsonWriter& json) { json.number(std::nan("")); }), "null");
}

TEST(JsonWriter, ViewsNestLikeTheirShape) {
  const std::vector<float> values = {0, 1, 2, 3, 4, 5};
  const View<const float, 3> view(values.data(), {1, 2, 3});
  EXPECT_EQ(written([&](JsonWriter& json) { json.numbers(view); }), "[[[0,1,2],[3,4,5]]]");
  // A column of a matrix: strides are followed.
  View<const float, 2> turned(values.data(), {3, 2}, {1, 3});
  EXPECT_EQ(written([&](JsonWriter& json) { json.numbers(turned); }), "[[0,3],[1,4],[2,5]]");
  EXPECT_EQ(written([&](JsonWriter& json) { json.numbers(View<const float, 2>(values.data(), {2, 0})); }), "[[],[]]");
}

TEST(JsonWriter, ManyBufferfulsComeOutWhole) {
  const std::string word(1000, 'x');
  const std::string json = written([&](JsonWriter& json) {
    json.begin_array();
    for (int i = 0; i < 500; ++i) json.string(word);
    json.string(std::string(200000, 'y'));
    json.end_array();
  });
  const auto parsed = nlohmann::json::parse(json);
  ASSERT_EQ(parsed.size(), 501u);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(parsed[i], word);
  EXPECT_EQ(parsed[500].get<std::string>().size(), 200000u);
}

}  // namespace
}  // namespace regard
