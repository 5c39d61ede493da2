// Safetensors files and folders: what is right is read as it is, and every vector of the public reader's tests that is
// not (safetensors/src/tensor.rs, attacks/).

#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "support/errors.h"
#include "support/safetensors_builder.h"
#include "support/temp_folder.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::safetensors;
using testing::SafetensorsBuilder;
using testing::TempFolder;
using testing::write_file;

class Safetensors : public ::testing::Test {
 protected:
  SafetensorsFiles read(const std::string& bytes) {
    write_file(path, bytes);
    return read_safetensors(path);
  }
  void refused(const std::string& bytes, const std::vector<std::string>& words, ErrorCode code = ErrorCode::bad_input) {
    SCOPED_TRACE(bytes.substr(0, 200));
    std::vector<std::string> all = {"x.safetensors"};
    all.insert(all.end(), words.begin(), words.end());
    expect_error(code, all, [&] { read(bytes); });
  }
  void header_refused(const std::string& header, const std::vector<std::string>& words, std::size_t data = 4) {
    refused(safetensors(header, std::string(data, '\1')), words);
  }

  TempFolder folder;
  std::filesystem::path path = folder / "x.safetensors";
};

std::string f32_entry(const std::string& name, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{}]}})", name, shape, offsets);
}
std::string one(const std::string& shape, const std::string& offsets) {
  return "{" + f32_entry("a", shape, offsets) + "}";
}

TEST_F(Safetensors, WhatIsRightIsReadAsItIs) {
  SafetensorsBuilder w;
  w.metadata("format", "pt");
  w.add_f32("a.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  w.add("scalar", "I64", {}, std::string(8, '\7'));
  w.add("nothing", "F16", {0, 5}, "");
  w.add("codes", "F8_E4M3", {3}, "abc");
  w.add("four bits", "F4", {6}, "xyz");
  w.add("half", "BF16", {1, 2}, "1234");
  const SafetensorsFiles files = read(w.bytes());
  EXPECT_EQ(files.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(files.tensors.size(), 6u);
  const StoredTensor& a = files.tensors.at("a.weight");
  EXPECT_EQ(a.format, "F32");
  EXPECT_EQ(a.dtype, DType::f32);
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 3}));
  float last;
  std::memcpy(&last, a.data + 20, 4);
  EXPECT_EQ(last, 6);
  EXPECT_EQ(files.tensors.at("scalar").shape, std::vector<std::int64_t>{});
  EXPECT_EQ(files.tensors.at("scalar").bytes, 8);
  EXPECT_EQ(files.tensors.at("nothing").bytes, 0);
  EXPECT_FALSE(files.tensors.at("codes").dtype);
  EXPECT_EQ(files.tensors.at("codes").format, "F8_E4M3");
  EXPECT_EQ(files.tensors.at("four bits").bytes, 3);
  EXPECT_EQ(files.tensors.at("half").dtype, DType::bf16);
  EXPECT_EQ(std::memcmp(files.tensors.at("half").data, "1234", 4), 0);

  EXPECT_EQ(read(safetensors("{}")).tensors.size(), 0u);
  EXPECT_EQ(read(safetensors(" \n{} \t\r\n  ")).tensors.size(), 0u);  // white space is tolerated on both sides
  EXPECT_EQ(read(safetensors(R"({"__metadata__":{}})")).metadata.size(), 0u);
  // In the file in another order than in the header; a value of no bytes between them.
  const std::string mixed = "{" + f32_entry("a", "1", "4,8") + "," + f32_entry("b", "0,9223372036854775807", "4,4") +
                            "," + f32_entry("c", "1", "0,4") + "}";
  EXPECT_EQ(read(safetensors(mixed, "12345678")).tensors.at("a").data[0], std::byte{'5'});
}

TEST_F(Safetensors, FilesThatAreNone) {
  refused("", {"empty"});
  refused("1234567", {"7 bytes"});
  refused(std::string("\x3c\0\0\0\0\xff\xff\xff", 8), {"longest allowed is 100000000"});
  refused(std::string("\x3c\0\0\0\0\0\0\0", 8), {"60 bytes", "0 are left"});
  refused(std::string(8, '\0'), {"does not begin with {"});
  refused(safetensors("{"), {"byte 9", "not JSON"});
  refused(safetensors("\xff\xfe"), {"does not begin with {"});
  refused(safetensors("\xef\xbb\xbf{}"), {"does not begin with {"});
  refused(safetensors(std::string("{}\0x", 4)), {"zero byte"});
  refused(safetensors("{\"\xff\":1}"), {"not JSON"});
  refused(safetensors("{}{}"), {"not JSON"});
  refused(safetensors("[]"), {"does not begin with {"});
  refused("version https://git-lfs.github.com/spec/v1\noid sha256:00\n", {"Git LFS"});
  refused(safetensors("{\"a\":" + std::string(1'000'000, '[')), {"'a'"});
  expect_error(ErrorCode::not_found, {"nowhere"}, [&] { read_safetensors(folder / "nowhere"); });
}

TEST_F(Safetensors, TensorsThatAreNone) {
  header_refused(one("2", "0,4"), {"'a'", "8 bytes by its shape but has 4"});
  header_refused(one("1", "0,4"), {"end at byte 4", "there are 6"}, 6);
  header_refused(one("1", "0,4"), {"ends at byte 4", "only 2"}, 2);
  header_refused(one("1", "4,8"), {"begins at byte 4"}, 8);
  header_refused(one("1", "4,0"), {"ends before it begins"});
  header_refused(one("2,18446744073709551614", "0,4"), {"too large"});
  header_refused(one("2,9223372036854775807", "0,4"), {"too large"});
  header_refused(one("9223372036854775807,9223372036854775807,0", "0,0"), {"too large"});
  header_refused(one("4611686018427387904", "0,4"), {"too large"});  // wraps only when multiplied by the bytes of each
  header_refused(one("1", "-4,0"), {"'data_offsets'"});
  header_refused(one("1", "0,4.0"), {"'data_offsets'"});
  header_refused(one("1", "0,4e0"), {"'data_offsets'"});
  header_refused(one("1", "0"), {"fewer than two"});
  header_refused(one("1", ""), {"fewer than two"});
  header_refused(one("1", "0,4,4"), {"'data_offsets'"});
  header_refused(one("1", "0,99999999999999999999"), {"'data_offsets'"});
  header_refused(one("-1", "0,4"), {"'shape'", "-1"});
  header_refused(one("1.0", "0,4"), {"'shape'"});
  header_refused(one("[1]", "0,4"), {"'shape'"});
  header_refused(one("\\\"1\\\"", "0,4"), {"not JSON"});
  header_refused(one("null", "0,4"), {"'shape'"});
  std::string axes = "1";
  for (int i = 0; i < 64; ++i) axes += ",1";
  header_refused(one(axes, "0,4"), {"more than 64 axes"});
  header_refused(R"({"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})", {"inside a byte"}, 1);
  refused(safetensors(R"({"a":{"dtype":"F128","shape":[1],"data_offsets":[0,4]}})", "1234"), {"'a'", "'F128'"},
          ErrorCode::unsupported);
  header_refused(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", {"'dtype'"});
  header_refused(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", {"no 'dtype'"});
  header_refused(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", {"no 'shape'"});
  header_refused(R"({"a":{"dtype":"F32","shape":[1]}})", {"no 'data_offsets'"});
  header_refused(R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", {"'shape' twice"});
  header_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", {"'x'"});
  header_refused(R"({"a":[]})", {"not an object"});
  header_refused(R"({"a":{}})", {"no 'dtype'"});
  const std::string twice = f32_entry("a", "1", "0,4");
  header_refused("{" + twice + "," + f32_entry("a", "1", "4,8") + "}", {"'a'", "twice"}, 8);
  header_refused("{" + twice + "," + f32_entry("\\u0061", "1", "4,8") + "}", {"'a'", "twice"}, 8);
  header_refused("{" + twice + "," + f32_entry("b", "1", "8,12") + "}", {"'b'", "begins at byte 8", "ends at 4"}, 12);
  header_refused("{" + twice + "," + f32_entry("b", "2", "2,10") + "}", {"'b'", "begins at byte 2", "ends at 4"}, 12);
  header_refused("{" + twice + "," + f32_entry("b", "1", "0,4") + "}", {"overlaps"}, 4);
  header_refused(R"({"__metadata__":{"a":1}})", {"'__metadata__'", "texts"}, 0);
  header_refused(R"({"__metadata__":{"a":{"b":"c"}}})", {"'__metadata__'"}, 0);
  header_refused(R"({"__metadata__":"x"})", {"'__metadata__'"}, 0);
  header_refused(R"({"__metadata__":{"a":"b","a":"c"}})", {"'a' twice"}, 0);
  header_refused(R"({"__metadata__":{},"__metadata__":{}})", {"twice"}, 0);
}

// attacks/safetensors_abuse_attempt_1.py: millions of tensors over the same bytes. The second one is one too many.
TEST_F(Safetensors, MillionsOfTensorsOverTheSameBytes) {
  std::string header = "{";
  for (int i = 0; header.size() < 30'000'000; ++i)
    header += fmt::format(R"("{}":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}},)", i);
  header.back() = '}';
  const auto began = std::chrono::steady_clock::now();
  refused(safetensors(header, "12345678"), {"'1'", "overlaps"});
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

class SafetensorsFolder : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::vector<std::string>& names) {
    SafetensorsBuilder w;
    for (const std::string& name : names) w.add(name, "U8", {2}, name.substr(0, 1) + "1");
    write_file(folder / file, w.bytes());
  }
  void index(const std::string& text) { write_file(folder / "model.safetensors.index.json", text); }
  SafetensorsFiles read() { return read_safetensors(folder.path()); }
  void refused(ErrorCode code, const std::vector<std::string>& words) {
    expect_error(code, words, [&] { read(); });
  }
  void shard_refused(const std::string& name, ErrorCode code = ErrorCode::bad_input) {
    SCOPED_TRACE(name);
    index(R"({"weight_map":{"a":")" + name + R"("}})");
    refused(code, {"model.safetensors.index.json", "weight_map"});
  }

  TempFolder folder;
};

TEST_F(SafetensorsFolder, OneFileOrThoseOfTheIndex) {
  put("m-1.safetensors", {"a", "b"});
  put("m-2.safetensors", {"c", "unlisted"});
  put("stray.safetensors", {"a", "z"});  // not in the index: not read
  index(R"({"metadata":{"total_size":6,"x":[[]]},
            "weight_map":{"a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"}})");
  const SafetensorsFiles files = read();
  ASSERT_EQ(files.tensors.size(), 4u);
  ASSERT_EQ(files.mappings.size(), 2u);
  const StoredTensor& c = files.tensors.at("c");
  EXPECT_EQ(files.mappings[c.file]->path(), folder / "m-2.safetensors");
  EXPECT_EQ(std::memcmp(c.data, "c1", 2), 0);
  EXPECT_EQ(read_safetensors(folder / "model.safetensors.index.json").tensors.size(), 4u);
  put("model.safetensors", {"a"});  // comes first
  EXPECT_EQ(read().tensors.size(), 1u);
  std::filesystem::remove(folder / "model.safetensors");
  std::filesystem::create_symlink("m-1.safetensors", folder / "model.safetensors");  // as in the hub's cache
  EXPECT_EQ(read().tensors.size(), 2u);
}

TEST_F(SafetensorsFolder, AnIndexThatIsNotRight) {
  put("m-1.safetensors", {"a", "b"});
  put("m-2.safetensors", {"c"});
  for (const char* name : {"../x.safetensors", "/x.safetensors", "a/b.safetensors", "a\\\\b.safetensors", "..", "",
                           "..\\\\x.safetensors", "x\\u0000.safetensors", "..safetensors/../x.safetensors"})
    shard_refused(name, std::string(name).empty() ? ErrorCode::unsupported : ErrorCode::bad_input);
  shard_refused("pytorch_model.bin", ErrorCode::unsupported);
  index(R"({"weight_map":{"a":"m-3.safetensors"}})");
  refused(ErrorCode::not_found, {"'m-3.safetensors'"});
  index(R"({"weight_map":{"a":"m-1.safetensors","x":"m-2.safetensors"}})");
  refused(ErrorCode::bad_input, {"'x'", "'m-2.safetensors'"});
  index(R"({"weight_map":{"a":"m-2.safetensors","b":"m-1.safetensors"}})");
  refused(ErrorCode::bad_input, {"'a'", "'m-1.safetensors'", "'m-2.safetensors'"});
  put("m-2.safetensors", {"a"});
  index(R"({"weight_map":{"a":"m-2.safetensors","b":"m-1.safetensors"}})");
  refused(ErrorCode::bad_input, {"'a'", "m-1.safetensors", "m-2.safetensors"});
  for (const char* text : {"", "[]", "{}", "{", "7", R"({"weight_map":{}})", R"({"weight_map":[]})",
                           R"({"weight_map":"x"})", R"({"weight_map":{"a":1}})", R"({"weight_map":{"a":{}}})",
                           R"({"weight_map":{"b":"m-1.safetensors","b":"m-1.safetensors"}})",
                           R"({"weight_map":{"b":"m-1.safetensors"},"weight_map":{"b":"m-1.safetensors"}})"}) {
    SCOPED_TRACE(text);
    index(text);
    refused(ErrorCode::bad_input, {"model.safetensors.index.json"});
  }
  index(R"({"weight_map":{"b":"m-1.safetensors"}})");
  EXPECT_EQ(read().tensors.size(), 2u);
}

TEST_F(SafetensorsFolder, PicklesAreNeverOpened) {
  refused(ErrorCode::not_found, {"model.safetensors"});
  for (const char* name : {"x.pt", "model.pth", "pytorch_model.bin"}) {
    write_file(folder / name, "PK");
    refused(ErrorCode::unsupported, {name, "pickle"});
    std::filesystem::remove(folder / name);
  }
}

}  // namespace
}  // namespace regard
