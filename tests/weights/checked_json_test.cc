#include "weights/checked_json.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/temp_folder.h"

namespace regard {
namespace {

using testing::expect_error;

void refuses(const std::string& text, std::vector<std::string> words) {
  words.push_back("x.json: ");
  expect_error(ErrorCode::bad_input, words, [&] { parse_json(text, "x.json"); });
}

TEST(CheckedJson, ReadsValuesAndNamesTheirPlaces) {
  const JsonPlace root = parse_json(
      R"({"a": [1, {"b": "x"}], "n": null, "t": true, "f": 0.5, "big": 18446744073709551615, "neg": -3})", "x.json");
  EXPECT_EQ(root.at("a").at(0).integer(), 1);
  const JsonPlace b = root.at("a").at(1).at("b");
  EXPECT_EQ(b.string(), "x");
  EXPECT_EQ(b.place(), "a[1].b");
  EXPECT_EQ(root.at("a").elements().size(), 2u);
  EXPECT_FALSE(root.find("n"));
  EXPECT_FALSE(root.find("absent"));
  EXPECT_TRUE(root.at("t").boolean());
  EXPECT_EQ(root.at("f").number(), 0.5);
  EXPECT_EQ(root.integer_or("neg", 1), -3);
  EXPECT_EQ(root.integer_or("absent", 1), 1);
  EXPECT_EQ(root.string_or("n", "none"), "none");
  EXPECT_EQ(root.keys(), (std::vector<std::string>{"a", "big", "f", "n", "neg", "t"}));
  const auto fails = [&](const std::vector<std::string>& words, const std::function<void()>& work) {
    expect_error(ErrorCode::bad_input, words, work);
  };
  fails({"x.json: a[1].b should be a whole number"}, [&] { b.integer(); });
  fails({"x.json: f should be a whole number"}, [&] { root.at("f").integer(); });
  fails({"x.json: big is too large"}, [&] { root.at("big").integer(); });
  fails({"x.json: the document has no member 'n'"}, [&] { root.at("n"); });
  fails({"x.json: a has 2 elements, not 3"}, [&] { root.at("a").at(2); });
  fails({"x.json: a should be an object"}, [&] { root.at("a").find("b"); });
  fails({"x.json: t should be a string"}, [&] { root.at("t").string(); });
  expect_error(ErrorCode::unsupported, {"x.json: the document has the member 'big'"}, [&] {
    root.expect_only({"a", "f", "n", "neg", "t"});
  });
  root.expect_only({"a", "f", "n", "neg", "t", "big"});
}

TEST(CheckedJson, RefusesWhatProgramsReadDifferently) {
  refuses(R"({"a": 1, "b": 2, "a": 3})", {"'a'", "twice"});
  refuses(R"({"x": {"a": 1, "\u0061": 3}})", {"'a'", "twice"});
  refuses(std::string(65, '[') + std::string(65, ']'), {"64 deep"});
  EXPECT_NO_THROW(parse_json(std::string(64, '[') + std::string(64, ']'), "x.json"));
  refuses(std::string(1 << 20, '['), {"64 deep"});
  refuses("{} {}", {"line 1"});
  refuses("{\n\"a\": 1,\n}", {"line 3, column 1"});
  refuses("", {"line 1"});
  refuses("[\"\xFF\"]", {"UTF-8"});
  refuses(R"(["\ud800"])", {"line 1"});
  refuses("[1e999]", {"line 1"});
  refuses("[NaN]", {"line 1"});
  refuses("[01]", {"line 1"});
}

TEST(CheckedJson, FilesThatAreNotThereOrTooLarge) {
  const testing::TempFolder folder;
  expect_error(ErrorCode::not_found, {"none.json"}, [&] { read_json(folder / "none.json"); });
  expect_error(ErrorCode::not_found, {}, [&] { read_json(folder.path()); });
  testing::write_file(folder / "x.json", "[1]");
  EXPECT_EQ(read_json(folder / "x.json").at(0).integer(), 1);
  std::filesystem::resize_file(folder / "x.json", (std::uint64_t{256} << 20) + 1);  // sparse
  expect_error(ErrorCode::bad_input, {"x.json", "268435457 bytes"}, [&] { read_json(folder / "x.json"); });
}

}  // namespace
}  // namespace regard
