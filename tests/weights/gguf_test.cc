#include "weights/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "support/errors.h"
#include "support/gguf_writer.h"
#include "support/temp_folder.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::GgufWriter;
using testing::little_endian;
using testing::TempFolder;

// A small right file to be spoilt.
GgufWriter small() {
  GgufWriter w;
  w.string("general.architecture", "llama");
  w.u32("a.u32", 7);
  w.tensor("one", {32, 2}, DType::q4_0, std::string(36, '\1'));
  w.tensor("two", {3}, std::vector<float>{1, 2, 3});
  return w;
}

class Gguf : public ::testing::Test {
 protected:
  // `look` may use the file while it is mapped.
  void read(const std::string& bytes, const std::function<void(const GgufFile&)>& look = {}) {
    testing::write_file(folder / "x.gguf", bytes);
    const MappedFile file(folder / "x.gguf");
    const GgufFile gguf = read_gguf(file);
    if (look) look(gguf);
  }
  void refuses(const std::string& bytes, std::vector<std::string> words, ErrorCode code = ErrorCode::bad_input) {
    words.push_back("x.gguf: ");
    expect_error(code, words, [&] { read(bytes); });
  }
  void refuses(const std::function<void(GgufWriter&)>& spoil, std::vector<std::string> words,
               ErrorCode code = ErrorCode::bad_input) {
    GgufWriter w = small();
    spoil(w);
    refuses(w.bytes(), std::move(words), code);
  }
  const TempFolder folder;
};

TEST_F(Gguf, ReadsEveryTypeOfValue) {
  for (const std::uint32_t version : {2u, 3u}) {
    GgufWriter w;
    w.version = version;
    w.raw("u8", 0, little_endian<std::uint8_t>(255));
    w.raw("i8", 1, little_endian<std::int8_t>(-128));
    w.raw("u16", 2, little_endian<std::uint16_t>(65535));
    w.raw("i16", 3, little_endian<std::int16_t>(-32768));
    w.u32("u32", 4294967295u);
    w.i32("i32", std::numeric_limits<std::int32_t>::min());
    w.f32("f32", 0.1f);
    w.boolean("yes", true);
    w.boolean("no", false);
    w.string("string", std::string("a\0b\xff", 4));
    w.u64("u64", std::numeric_limits<std::uint64_t>::max());
    w.raw("i64", 11, little_endian(std::numeric_limits<std::int64_t>::min()));
    w.f64("f64", 0.1);
    w.strings("strings", {"", "x", "yz"});
    w.i32s("i32s", {1, -2, 3});
    w.f32s("f32s", {0.5f, -0.25f});
    w.array("bools", 7, 3, std::string("\1\0\1", 3));
    w.array("u64s", 10, 2, little_endian<std::uint64_t>(5) + little_endian(std::numeric_limits<std::uint64_t>::max()));
    w.array("none", 12, 0, "");
    read(w.bytes(), [&](const GgufFile& g) {
      EXPECT_EQ(g.version, version);
      EXPECT_EQ(g.metadata.size(), 19u);
      EXPECT_EQ(g.integer("u8"), 255);
      EXPECT_EQ(g.integer("i8"), -128);
      EXPECT_EQ(g.integer("u16"), 65535);
      EXPECT_EQ(g.integer("i16"), -32768);
      EXPECT_EQ(g.integer("u32"), 4294967295);
      EXPECT_EQ(g.integer("i32"), std::numeric_limits<std::int32_t>::min());
      EXPECT_EQ(g.integer("i64"), std::numeric_limits<std::int64_t>::min());
      EXPECT_EQ(g.number("f32"), static_cast<double>(0.1f));
      EXPECT_EQ(g.number("f64"), 0.1);
      EXPECT_EQ(g.number("u8"), 255.0);
      EXPECT_TRUE(*g.find_bool("yes"));
      EXPECT_FALSE(*g.find_bool("no"));
      EXPECT_EQ(g.string("string"), std::string_view("a\0b\xff", 4));
      EXPECT_EQ(g.find_array("strings")->strings, (std::vector<std::string_view>{"", "x", "yz"}));
      EXPECT_EQ(g.find_array("i32s")->integer(1), -2);
      EXPECT_EQ(g.find_array("i32s")->number(2), 3.0);
      EXPECT_EQ(g.find_array("f32s")->number(1), -0.25);
      EXPECT_EQ(g.find_array("bools")->count, 3);
      EXPECT_EQ(g.find_array("u64s")->integer(0), 5);
      EXPECT_EQ(g.find_array("none")->count, 0);

      EXPECT_FALSE(g.find_integer("absent"));
      EXPECT_EQ(g.find_array("absent"), nullptr);
      expect_error(ErrorCode::bad_input, {"x.gguf", "'absent'", "missing"}, [&] { g.string("absent"); });
      expect_error(ErrorCode::bad_input, {"'string'", "an integer", "string"}, [&] { g.integer("string"); });
      expect_error(ErrorCode::bad_input, {"'u8'", "a string", "u8"}, [&] { g.string("u8"); });
      expect_error(ErrorCode::bad_input, {"'strings'", "a number", "array"}, [&] { g.number("strings"); });
      expect_error(ErrorCode::bad_input, {"'u64'", "too large"}, [&] { g.integer("u64"); });
      expect_error(ErrorCode::bad_input, {"too large"}, [&] { g.find_array("u64s")->integer(1); });
      expect_error(ErrorCode::bad_input, {"no integers"}, [&] { g.find_array("f32s")->integer(0); });
      expect_error(ErrorCode::bad_input, {"no integers"}, [&] { g.find_array("bools")->number(0); });
    });
  }
}

TEST_F(Gguf, FindsTheTensors) {
  for (const std::uint64_t alignment : {1u, 32u, 4096u}) {
    GgufWriter w = small();
    w.alignment = alignment;
    w.u32("general.alignment", static_cast<std::uint32_t>(alignment));
    read(w.bytes(), [&](const GgufFile& g) {
      EXPECT_EQ(g.alignment, static_cast<std::int64_t>(alignment));
      EXPECT_EQ(g.data_offset % g.alignment, 0);
      const GgufTensor& one = g.tensors.at("one");
      EXPECT_EQ(one.type->name, "Q4_0");
      EXPECT_EQ(one.type->dtype, DType::q4_0);
      EXPECT_EQ(one.shape, (std::vector<std::int64_t>{32, 2}));
      EXPECT_EQ(one.offset, g.data_offset);
      EXPECT_EQ(one.bytes, 36);
      const GgufTensor& two = g.tensors.at("two");
      EXPECT_EQ(two.bytes, 12);
      EXPECT_EQ(two.offset % g.alignment, 0);
      const std::string bytes = testing::read_file(folder / "x.gguf");
      float values[3];
      std::memcpy(values, &bytes[static_cast<std::size_t>(two.offset)], 12);
      EXPECT_EQ(values[2], 3.0f);
    });
  }
}

TEST_F(Gguf, AcceptsWhatIsUnusualButRight) {
  GgufWriter empty;
  read(empty.bytes(), [](const GgufFile& g) { EXPECT_TRUE(g.tensors.empty() && g.metadata.empty()); });
  GgufWriter w = small();
  w.tensor("zero extent", {0, 5}, DType::f32, "");
  w.tensor("scalar", {}, DType::f32, std::string(4, 'x'));
  w.tensor("four axes", {2, 1, 2, 1}, DType::f16, std::string(8, 'x'));
  std::string bytes = w.bytes();
  bytes.resize(bytes.size() - 24);  // the padding after the last one may be missing
  read(bytes, [](const GgufFile& g) {
    EXPECT_EQ(g.tensors.at("zero extent").bytes, 0);
    EXPECT_EQ(g.tensors.at("scalar").bytes, 4);
    EXPECT_EQ(g.tensors.at("four axes").shape.size(), 4u);
  });
}

// Every id of ggml, with a block of data of its size; what regard cannot compute with is there all the same, by name.
TEST_F(Gguf, KnowsEveryTensorType) {
  int known = 0, computable = 0;
  for (std::uint32_t id = 0; id < 64; ++id) {
    const GgufTensorType* type = find_gguf_tensor_type(id);
    const bool hole = id == 4 || id == 5 || (id >= 31 && id <= 33) || (id >= 36 && id <= 38) || id >= 43;
    EXPECT_EQ(type == nullptr, hole) << id;
    if (type == nullptr) {
      refuses([&](GgufWriter& w) { w.tensors[0].type = id; }, {"'one'", "unknown type " + std::to_string(id)});
      continue;
    }
    ++known;
    if (type->dtype) {
      ++computable;
      EXPECT_EQ(testing::ggml_id(*type->dtype), id);
      EXPECT_EQ(info(*type->dtype).block_elements, type->block_elements);
      EXPECT_EQ(info(*type->dtype).block_bytes, type->block_bytes);
    }
    GgufWriter w;
    w.tensors.push_back({"t",
                         {3 * static_cast<std::uint64_t>(type->block_elements)},
                         id,
                         std::string(3 * static_cast<std::size_t>(type->block_bytes), 'x'),
                         {},
                         {},
                         {}});
    read(w.bytes(), [&](const GgufFile& g) { EXPECT_EQ(g.tensors.at("t").type->name, type->name); });
  }
  EXPECT_EQ(known, 35);
  EXPECT_EQ(computable, 17);
  refuses([](GgufWriter& w) { w.tensors[0].type = 0xffffffff; }, {"unknown type"});
}

TEST_F(Gguf, RefusesWhatIsNoGguf) {
  refuses("G", {"GGUF"});
  refuses("GGU", {"GGUF"});
  refuses("GGUF", {"ends", "version"});
  refuses([](GgufWriter& w) { w.magic = "FUGG"; }, {"does not start"});
  refuses([](GgufWriter& w) { w.magic = "GGML"; }, {"does not start"});
  refuses([](GgufWriter& w) { w.version = 0; }, {"version 0"}, ErrorCode::unsupported);
  refuses([](GgufWriter& w) { w.version = 1; }, {"version 1"}, ErrorCode::unsupported);
  refuses([](GgufWriter& w) { w.version = 4; }, {"version 4"}, ErrorCode::unsupported);
  refuses([](GgufWriter& w) { w.version = 0x03000000; }, {"big-endian"}, ErrorCode::unsupported);
  refuses([](GgufWriter& w) { w.version = 0x02000000; }, {"big-endian"}, ErrorCode::unsupported);
}

TEST_F(Gguf, RefusesCountsThatTheFileCannotHold) {
  for (const std::uint64_t n :
       {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{1} << 32, std::uint64_t{100}}) {
    refuses([&](GgufWriter& w) { w.n_tensors = n; }, {"tensors"});
    refuses([&](GgufWriter& w) { w.n_entries = n; }, {"metadata keys"});
  }
  refuses([](GgufWriter& w) { w.n_tensors = 3; }, {"byte"});
  refuses([](GgufWriter& w) { w.n_entries = 3; }, {"byte"});
  refuses([](GgufWriter& w) { w.n_entries = 1; }, {"byte"});
}

TEST_F(Gguf, RefusesBadKeysAndValues) {
  refuses([](GgufWriter& w) { w.entries[1].key_length = ~std::uint64_t{0}; },
          {"a metadata key is said to have", "left"});
  refuses([](GgufWriter& w) { w.entries[1].key_length = 4000; }, {"a metadata key is said to have 4000 bytes"});
  refuses([](GgufWriter& w) { w.u32("", 1); }, {"key is empty"});
  refuses([](GgufWriter& w) { w.u32("a.u32", 1); }, {"'a.u32' comes twice"});
  refuses([](GgufWriter& w) { w.raw("k", 13, "x"); }, {"'k'", "unknown type 13"});
  refuses([](GgufWriter& w) { w.raw("k", 0xffffffff, "x"); }, {"unknown type"});
  for (const char byte : {'\2', '\x80', '\xff'})
    refuses([&](GgufWriter& w) { w.raw("k", 7, std::string(1, byte)); }, {"'k'", "neither 0 nor 1"});
  refuses([](GgufWriter& w) { w.array("k", 7, 2, std::string("\1\2", 2)); }, {"'k'", "neither 0 nor 1"});
  refuses([](GgufWriter& w) { w.raw("k", 8, little_endian<std::uint64_t>(1 << 20)); },
          {"a string is said to have", "left"});
  refuses([](GgufWriter& w) { w.raw("k", 8, little_endian(~std::uint64_t{0})); }, {"a string is said to have"});
  // names out of a file are shown so that they cannot play tricks on a terminal
  refuses([](GgufWriter& w) { w.raw("k\x1b[31m\n", 13, "x"); }, {"'k\\x1B[31m\\x0A'"});
}

TEST_F(Gguf, RefusesStringsTooLongToBeMeant) {
  GgufWriter w;
  w.raw("long", 8, little_endian<std::uint64_t>((64 << 20) + 1));
  testing::write_file(folder / "x.gguf", w.bytes());
  std::filesystem::resize_file(folder / "x.gguf", 65 << 20);  // a hole: takes no room
  const MappedFile file(folder / "x.gguf");
  expect_error(ErrorCode::bad_input, {"67108865 bytes; the longest allowed is 67108864"}, [&] { read_gguf(file); });
}

TEST_F(Gguf, RefusesBadArrays) {
  const std::uint64_t huge[] = {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{1} << 61,
                                std::uint64_t{1} << 31};
  for (std::uint32_t element = 0; element <= 12; ++element)
    for (const std::uint64_t n : huge)
      refuses([&](GgufWriter& w) { w.array("k", element, n, "xx"); },
              {"'k'", element == 9 ? "array of arrays" : "elements"});
  refuses([](GgufWriter& w) { w.array("k", 9, 1, little_endian<std::uint32_t>(4) + little_endian<std::uint64_t>(0)); },
          {"'k'", "array of arrays"});
  refuses([](GgufWriter& w) { w.array("k", 9, 0, ""); }, {"array of arrays"});
  refuses([](GgufWriter& w) { w.array("k", 13, 1, "x"); }, {"unknown type 13"});
  refuses([](GgufWriter& w) { w.array("k", 8, 1, little_endian(~std::uint64_t{0})); },
          {"a string of an array is said to have"});
  // llama.cpp PR #27188: 43 bytes that ask for 2^63 elements
  refuses("GGUF" + little_endian<std::uint32_t>(3) + little_endian<std::uint64_t>(0) + little_endian<std::uint64_t>(1) +
              GgufWriter::encoded("k") + little_endian<std::uint32_t>(9) + little_endian<std::uint32_t>(0) +
              little_endian(std::uint64_t{1} << 63),
          {"elements"});
}

TEST_F(Gguf, RefusesBadAlignment) {
  for (const std::uint32_t alignment : {0u, 13u, 48u, 1u << 21, 1u << 31, 0xffffffffu})
    refuses([&](GgufWriter& w) { w.u32("general.alignment", alignment); }, {"general.alignment is"});
  refuses([](GgufWriter& w) { w.u64("general.alignment", 32); }, {"general.alignment should be u32 but is u64"});
  refuses([](GgufWriter& w) { w.i32("general.alignment", 32); }, {"should be u32"});
  refuses([](GgufWriter& w) { w.string("general.alignment", "32"); }, {"should be u32"});
  // the offsets were counted with 32
  refuses([](GgufWriter& w) { w.u32("general.alignment", 128); }, {"'two'", "start at 64", "end at 128"});
}

TEST_F(Gguf, RefusesBadTensors) {
  refuses([](GgufWriter& w) { w.tensors[0].name_length = ~std::uint64_t{0}; }, {"a tensor's name is said to have"});
  refuses([](GgufWriter& w) { w.tensors[0].name = ""; }, {"name is empty"});
  refuses([](GgufWriter& w) { w.tensors[0].name = std::string(64, 'n'); }, {"64 bytes; the longest allowed is 63"});
  refuses([](GgufWriter& w) { w.tensors[1].name = "one"; }, {"'one' comes twice"});
  for (const std::uint32_t axes : {5u, 9u, 0x7fffffffu, 0xffffffffu})
    refuses([&](GgufWriter& w) { w.tensors[0].n_dims = axes; }, {"'one'", "axes"});
  refuses([](GgufWriter& w) { w.tensors[0].shape = {33, 2}; }, {"'one'", "33 elements", "Q4_0 blocks of 32"});
  refuses([](GgufWriter& w) { w.tensors[0].shape = {16, 4}; }, {"'one'", "16 elements"});
  refuses([](GgufWriter& w) { w.tensors[0].shape = {}; }, {"'one'", "1 elements"});
  refuses([](GgufWriter& w) { w.tensors[0].offset = 32; }, {"'one'", "start at 32", "end at 0"});
  refuses([](GgufWriter& w) { w.tensors[1].offset = 36; }, {"'two'", "start at 36", "end at 64"});
  refuses([](GgufWriter& w) { w.tensors[1].offset = 0; }, {"'two'", "start at 0", "end at 64"});
  refuses([](GgufWriter& w) { w.tensors[1].offset = 96; }, {"'two'"});
  refuses([](GgufWriter& w) { w.tensors[1].offset = ~std::uint64_t{0} - 31; }, {"'two'"});
}

TEST_F(Gguf, RefusesExtentsThatOverflow) {
  const std::uint64_t top = std::uint64_t{1} << 63;
  refuses([&](GgufWriter& w) { w.tensors[1].shape = {top}; }, {"'two'", "negative or too large"});
  refuses([&](GgufWriter& w) { w.tensors[1].shape = {~std::uint64_t{0}}; }, {"negative or too large"});
  for (const std::vector<std::uint64_t>& shape :
       std::vector<std::vector<std::uint64_t>>{{1u << 31, 1u << 31, 1u << 31},
                                               {top - 1, 2},
                                               {std::uint64_t{1} << 32, std::uint64_t{1} << 32},
                                               {top - 1, top - 1, 4, 4}})
    refuses([&](GgufWriter& w) { w.tensors[1].shape = shape; }, {"'two'", "more elements than can be counted"});
  refuses([&](GgufWriter& w) { w.tensors[1].shape = {top - 1}; },
          {"'two'", "more bytes than can be counted"});  // times 4
  refuses([&](GgufWriter& w) { w.tensors[1].shape = {std::uint64_t{1} << 61}; }, {"'two'", "more bytes"});
}

// CVE-2025-53630, CVE-2026-27940: the sum of the sizes wraps.
TEST_F(Gguf, RefusesSizesWhoseSumOverflows) {
  const std::uint64_t size = 0x7FFFFFFFFFFFFFC0;
  GgufWriter w;
  w.tensors.push_back({"a", {size}, 24, "", {}, {}, {}});
  w.tensors.push_back({"b", {size}, 24, "", {}, size, {}});
  refuses(w.bytes(), {"more bytes than can be counted"});
  w.tensors[0].shape = w.tensors[1].shape = {size / 2};
  w.tensors[1].offset = size / 2;
  w.tensors.push_back({"c", {size / 2}, 24, "", {}, size, {}});
  refuses(w.bytes(), {"more bytes than can be counted"});
  w.tensors.pop_back();
  refuses(w.bytes(), {"should have", "but the file has only"});
}

// CVE-2026-7482: the shape promises more than the file has.
TEST_F(Gguf, RefusesDataThatIsNotThere) {
  refuses([](GgufWriter& w) { w.tensors[1].shape = {4000}; },
          {"'two' should have 16000 bytes", "but the file has only"});
  GgufWriter w = small();
  w.alignment = 1 << 20;
  w.u32("general.alignment", 1 << 20);
  w.tensors.clear();
  std::string bytes = w.bytes();
  read(bytes.substr(0, 200));  // nothing there to be cut off but padding
  w.tensor("t", {1}, std::vector<float>{1});
  bytes = w.bytes();
  refuses(bytes.substr(0, 400), {"'t'"});  // the data would start past the end
}

}  // namespace
}  // namespace regard
