// Numbers of eight and four bits against PyTorch, transformers and gguf: tests/data/float8/make.py.

#include "weights/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "weights/mxfp4.h"

namespace regard {
namespace {

using testing::expect_error;

std::string data(const std::string& name) { return testing::read_file(REGARD_TEST_DATA "/float8/" + name); }

StoredTensor tensor(const std::string& format, std::vector<std::int64_t> shape, const char* at, std::int64_t bytes) {
  StoredTensor t;
  t.format = format;
  t.shape = std::move(shape);
  t.data = reinterpret_cast<const std::byte*>(at);
  t.bytes = bytes;
  return t;
}

// The same bits; NaN as NaN.
void expect_floats(const float* got, const char* expected, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, expected + i * 4, 4);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(got[i])) << i;
    else
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(value)) << i;
  }
}

TEST(Float8, EveryCode) {
  const std::string expected = data("codes.bin");
  ASSERT_EQ(expected.size(), 5u * 256 * 4);
  const char* names[] = {"F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"};
  for (int t = 0; t < 5; ++t) {
    SCOPED_TRACE(names[t]);
    const auto type = float8_from_name(names[t]);
    ASSERT_TRUE(type);
    float values[256];
    for (int code = 0; code < 256; ++code) values[code] = f32_from_float8(*type, static_cast<std::uint8_t>(code));
    expect_floats(values, expected.data() + t * 1024, 256);
  }
  EXPECT_FALSE(float8_from_name("F32"));
}

TEST(Float8, MatrixInBlocks) {
  const std::string bytes = data("blocks.bin");
  const StoredTensor weight = tensor("F8_E4M3", {6, 8}, bytes.data(), 48);
  const StoredTensor scale = tensor("F32", {3, 2}, bytes.data() + 48, 24);
  for (const auto& block : {std::optional<ScaleBlock>{}, std::optional(ScaleBlock{2, 4})}) {
    const Tensor<float, 2> wide = widen_float8("x", weight, &scale, block);
    ASSERT_EQ(wide.size(), 48);
    expect_floats(wide.data(), bytes.data() + 72, 48);
  }
}

TEST(Float8, BlocksThatEndEarlyOneScalePerRowAndOneForAll) {
  const std::string ones(15, '\x38');  // 3 x 5 ones
  const StoredTensor weight = tensor("F8_E4M3", {3, 5}, ones.data(), 15);
  EXPECT_EQ(widen_float8("x", weight, nullptr)(2, 4), 1.0f);
  const float many[] = {2, 3, 4, 5, 6, 7};
  const StoredTensor blocks = tensor("F32", {2, 3}, reinterpret_cast<const char*>(many), 24);
  const Tensor<float, 2> wide = widen_float8("x", weight, &blocks, ScaleBlock{2, 2});
  EXPECT_EQ(wide(0, 0), 2.0f);
  EXPECT_EQ(wide(1, 4), 4.0f);
  EXPECT_EQ(wide(2, 1), 5.0f);
  EXPECT_EQ(wide(2, 4), 7.0f);
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{3}, {3, 1}}) {
    const StoredTensor rows = tensor("F32", shape, reinterpret_cast<const char*>(many), 12);
    for (const auto& block : {std::optional<ScaleBlock>{}, std::optional(ScaleBlock{128, 128})})
      EXPECT_EQ(widen_float8("x", weight, &rows, block)(2, 3), 4.0f);
  }
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {1}, {1, 1}}) {
    const StoredTensor one = tensor("F32", shape, reinterpret_cast<const char*>(many), 4);
    EXPECT_EQ(widen_float8("x", weight, &one)(2, 3), 2.0f);
  }
  // Scales of other types: 2 as bf16, as f16 and as a power of two.
  for (const auto& [format, stored] : {std::pair<const char*, std::string>{"BF16", {"\x00\x40", 2}},
                                       {"F16", {"\x00\x40", 2}},
                                       {"F8_E8M0", "\x80"},
                                       {"U8", "\x80"}}) {
    const StoredTensor one = tensor(format, {}, stored.data(), static_cast<std::int64_t>(stored.size()));
    EXPECT_EQ(widen_float8("x", weight, &one)(0, 0), 2.0f) << format;
  }
  const StoredTensor empty = tensor("F8_E5M2", {0, 5}, ones.data(), 0);
  EXPECT_EQ(widen_float8("x", empty, nullptr).size(), 0);
}

TEST(Float8, WhatDoesNotFitIsRefused) {
  const std::string bytes(64, '\0');
  const StoredTensor weight = tensor("F8_E4M3", {3, 5}, bytes.data(), 15);
  const auto scaled = [&](const char* format, std::vector<std::int64_t> shape, std::int64_t size,
                          std::optional<ScaleBlock> block = {}) {
    const StoredTensor scale = tensor(format, std::move(shape), bytes.data(), size);
    widen_float8("f: 'w'", weight, &scale, block);
  };
  expect_error(ErrorCode::bad_input, {"f: 'w'", "[2, 3]", "3 x 5"}, [&] { scaled("F32", {2, 3}, 24); });
  expect_error(ErrorCode::bad_input, {"[2, 3]", "4 x 2"}, [&] { scaled("F32", {2, 3}, 24, ScaleBlock{4, 2}); });
  expect_error(ErrorCode::bad_input, {"0 x 2"}, [&] { scaled("F32", {2, 3}, 24, ScaleBlock{0, 2}); });
  expect_error(ErrorCode::bad_input, {"[5]"}, [&] { scaled("F32", {5}, 20); });
  expect_error(ErrorCode::bad_input, {"[0]"}, [&] { scaled("F32", {0}, 0); });
  expect_error(ErrorCode::unsupported, {"I32"}, [&] { scaled("I32", {}, 4); });
  const StoredTensor cube = tensor("F8_E4M3", {1, 3, 5}, bytes.data(), 15),
                     plain = tensor("U8", {3, 5}, bytes.data(), 15);
  expect_error(ErrorCode::bad_input, {"[1, 3, 5]"}, [&] { widen_float8("f", cube, nullptr); });
  expect_error(ErrorCode::unsupported, {"U8"}, [&] { widen_float8("f", plain, nullptr); });
}

TEST(Mxfp4, AsInSafetensors) {
  const std::string bytes = data("mxfp4.bin");
  const StoredTensor blocks = tensor("U8", {2, 3, 2, 16}, bytes.data(), 192);
  const StoredTensor scales = tensor("U8", {2, 3, 2}, bytes.data() + 192, 12);
  const Tensor<float, 2> wide = widen_mxfp4("x", blocks, scales);
  ASSERT_EQ(wide.shape(), (std::array<std::int64_t, 2>{6, 64}));
  expect_floats(wide.data(), bytes.data() + 204, 384);
  const StoredTensor fewer = tensor("U8", {2, 2, 2}, bytes.data(), 8),
                     other = tensor("I8", {2, 3, 2}, bytes.data(), 12);
  expect_error(ErrorCode::bad_input, {"f: 'w'"}, [&] { widen_mxfp4("f: 'w'", blocks, fewer); });
  expect_error(ErrorCode::unsupported, {"I8"}, [&] { widen_mxfp4("f", blocks, other); });
}

}  // namespace
}  // namespace regard
