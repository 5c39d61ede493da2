#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <set>

#include "tensor/error.h"

namespace regard {
namespace {

constexpr DType kAll[] = {DType::f32,  DType::f16,  DType::bf16,   DType::f64,    DType::q4_0, DType::q4_1,
                          DType::q5_0, DType::q5_1, DType::q8_0,   DType::q2_k,   DType::q3_k, DType::q4_k,
                          DType::q5_k, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4};

TEST(DType, EveryTypeHasItsOwnName) {
  std::set<std::string_view> names;
  for (DType type : kAll) names.insert(info(type).name);
  EXPECT_EQ(names.size(), std::size(kAll));
  EXPECT_EQ(info(DType::bf16).name, "bf16");
  EXPECT_EQ(info(DType::q4_1).name, "q4_1");
  EXPECT_EQ(info(DType::iq4_xs).name, "iq4_xs");
}

// From the parts of each block, as ggml-common.h lists them: scales in f16 (2 bytes), then packed numbers.
TEST(DType, BlockBytesAreTheSumOfTheirParts) {
  const auto bytes = [](DType type) { return info(type).block_bytes; };
  EXPECT_EQ(bytes(DType::f32), 4);
  EXPECT_EQ(bytes(DType::f16), 2);
  EXPECT_EQ(bytes(DType::bf16), 2);
  EXPECT_EQ(bytes(DType::f64), 8);
  EXPECT_EQ(bytes(DType::q4_0), 2 + 32 / 2);
  EXPECT_EQ(bytes(DType::q4_1), 2 + 2 + 32 / 2);
  EXPECT_EQ(bytes(DType::q5_0), 2 + 32 / 8 + 32 / 2);
  EXPECT_EQ(bytes(DType::q5_1), 2 + 2 + 32 / 8 + 32 / 2);
  EXPECT_EQ(bytes(DType::q8_0), 2 + 32);
  EXPECT_EQ(bytes(DType::q2_k), 256 / 16 + 256 / 4 + 2 + 2);
  EXPECT_EQ(bytes(DType::q3_k), 256 / 8 + 256 / 4 + 12 + 2);
  EXPECT_EQ(bytes(DType::q4_k), 2 + 2 + 12 + 256 / 2);
  EXPECT_EQ(bytes(DType::q5_k), 2 + 2 + 12 + 256 / 8 + 256 / 2);
  EXPECT_EQ(bytes(DType::q6_k), 256 / 2 + 256 / 4 + 256 / 16 + 2);
  EXPECT_EQ(bytes(DType::iq4_nl), 2 + 32 / 2);
  EXPECT_EQ(bytes(DType::iq4_xs), 2 + 2 + 256 / 64 + 256 / 2);
  EXPECT_EQ(bytes(DType::mxfp4), 1 + 32 / 2);
  for (DType type : kAll) {
    const bool plain = type <= DType::f64;
    const bool super = info(type).block_elements == 256;
    EXPECT_EQ(info(type).block_elements, plain ? 1 : super ? 256 : 32);
  }
}

TEST(DType, BytesOfARow) {
  EXPECT_EQ(row_bytes(DType::f32, 0), 0);
  EXPECT_EQ(row_bytes(DType::f32, 3), 12);
  EXPECT_EQ(row_bytes(DType::q4_1, 576), 576 / 32 * 20);
  EXPECT_EQ(row_bytes(DType::q6_k, 2560), 10 * 210);
  EXPECT_EQ(row_bytes(DType::f64, std::int64_t{1} << 40), std::int64_t{1} << 43);
}

TEST(DType, ARowThatIsNotWholeBlocksIsAnErrorThatNamesTheType) {
  for (auto [type, elements] : {std::pair{DType::q4_1, 31}, {DType::q4_1, 33}, {DType::q6_k, 640}, {DType::f32, -1}}) {
    try {
      row_bytes(type, elements);
      ADD_FAILURE() << elements << " of " << info(type).name;
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::bad_input);
      EXPECT_NE(e.message.find(info(type).name), std::string::npos) << e.message;
      EXPECT_NE(e.message.find(std::to_string(elements)), std::string::npos) << e.message;
      EXPECT_STREQ(e.what(), e.message.c_str());
    }
  }
}

}  // namespace
}  // namespace regard
