#include "kernels/dequantize.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "kernels/matmul.h"
#include "support/matrices.h"
#include "support/targets.h"
#include "tensor/error.h"

namespace regard {
namespace {

using testing::kAllTypes;
using testing::StoredMatrix;
using testing::widened;

// Equal bits, or both not a number (whose payload is nobody's contract).
::testing::AssertionResult same_numbers(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " numbers";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return ::testing::AssertionFailure() << "[" << i << "]: " << a[i] << " and " << b[i];
  }
  return ::testing::AssertionSuccess();
}

// tests/data/kernels/make_blocks.py: 8 rows of 256, stored bytes and the numbers the Python package gguf reads in them.
struct Oracle {
  static constexpr std::int64_t kRows = 8, kCols = 256;
  std::vector<std::byte> stored;
  std::vector<float> values;
  Matrix matrix;

  explicit Oracle(DType type) : values(kRows * kCols) {
    const std::string path = std::string(REGARD_TEST_DATA "/kernels/blocks_") + std::string(info(type).name) + ".bin";
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    stored.resize(static_cast<std::size_t>(kRows * row_bytes(type, kCols)));
    if (bytes.size() != stored.size() + values.size() * sizeof(float)) throw std::runtime_error("size of " + path);
    std::memcpy(stored.data(), bytes.data(), stored.size());
    std::memcpy(values.data(), bytes.data() + stored.size(), values.size() * sizeof(float));
    matrix = {type, kRows, kCols, stored.data(), row_bytes(type, kCols)};
  }
};

std::vector<DType> block_types() {
  std::vector<DType> types;
  for (DType type : kAllTypes)
    if (info(type).block_elements > 1) types.push_back(type);
  return types;
}

TEST(Dequantize, GivesTheNumbersOfTheGgufPackage) {
  ASSERT_EQ(block_types().size(), 13u);
  for (DType type : block_types()) {
    SCOPED_TRACE(info(type).name);
    const Oracle oracle(type);
    EXPECT_TRUE(same_numbers(widened(oracle.matrix), oracle.values));
  }
}

// x with a single 1 picks a weight: sum = fma(w, 1, +0), which is w itself but for the sign of a zero.
TEST(Dequantize, IsWhatTheProductMultipliesWith) {
  testing::on_each_target([](const std::string&) {
    for (DType type : block_types()) {
      SCOPED_TRACE(info(type).name);
      Oracle oracle(type);
      // Rows 0 and 1 are infinite and not a number: 0 times them would spoil the sums, so they have the test below.
      oracle.matrix.data = oracle.matrix.row(2);
      oracle.matrix.rows = Oracle::kRows - 2;
      bool finite = true;
      std::vector<float> expected(oracle.values.begin() + 2 * Oracle::kCols, oracle.values.end());
      for (float& v : expected) {
        finite = finite && std::isfinite(v);
        v += 0.0f;
      }
      if (!finite) {  // row 3 has scales of random bits
        for (std::int64_t k = 0; k < Oracle::kCols; ++k) expected[static_cast<std::size_t>(Oracle::kCols + k)] = 0;
        std::memset(oracle.stored.data() + 3 * oracle.matrix.row_stride, 0,
                    static_cast<std::size_t>(oracle.matrix.row_stride));
      }
      for (std::int64_t rows : {1, 2, 5, 256}) {  // every form of the product
        const std::int64_t n = oracle.matrix.rows;
        std::vector<float> got(expected.size());
        for (std::int64_t first = 0; first < Oracle::kCols; first += rows) {
          const std::int64_t r = std::min(rows, Oracle::kCols - first);
          std::vector<float> x(static_cast<std::size_t>(r * Oracle::kCols)), y(static_cast<std::size_t>(r * n));
          for (std::int64_t i = 0; i < r; ++i) x[static_cast<std::size_t>(i * Oracle::kCols + first + i)] = 1;
          matmul(oracle.matrix, View<const float, 2>(x.data(), {r, Oracle::kCols}), View<float, 2>(y.data(), {r, n}));
          for (std::int64_t i = 0; i < r; ++i) {
            for (std::int64_t j = 0; j < n; ++j)
              got[static_cast<std::size_t>(j * Oracle::kCols + first + i)] = y[static_cast<std::size_t>(i * n + j)];
          }
        }
        EXPECT_TRUE(same_numbers(got, expected)) << rows << " rows";
      }
    }
  });
}

// Infinite and undefined scales: a product with such a row is what the widened row says it is.
TEST(Dequantize, SpoiltScalesSpoilTheProductInTheSameWay) {
  testing::on_each_target([](const std::string&) {
    for (DType type : block_types()) {
      SCOPED_TRACE(info(type).name);
      const Oracle oracle(type);
      for (std::int64_t rows : {1, 2, 5}) {
        const std::vector<float> x(static_cast<std::size_t>(rows * Oracle::kCols), 1.0f);
        std::vector<float> y(static_cast<std::size_t>(rows * Oracle::kRows));
        matmul(oracle.matrix, View<const float, 2>(x.data(), {rows, Oracle::kCols}),
               View<float, 2>(y.data(), {rows, Oracle::kRows}));
        for (std::int64_t n = 0; n < Oracle::kRows; ++n) {
          float sum = 0;
          for (std::int64_t k = 0; k < Oracle::kCols; ++k)
            sum += oracle.values[static_cast<std::size_t>(n * Oracle::kCols + k)];
          for (std::int64_t r = 0; r < rows; ++r)
            EXPECT_TRUE(same_numbers(std::vector{y[static_cast<std::size_t>(r * Oracle::kRows + n)]}, std::vector{sum}))
                << "output " << n;
        }
      }
    }
  });
}

TEST(Dequantize, PlainTypesAreRoundedOnce) {
  const double stored[] = {1.0 / 3, -1e-50, 1e300, -1e300, 16777217.0, 0x1.000001p0, -0.0};
  Matrix w{DType::f64, 1, 7, reinterpret_cast<const std::byte*>(stored), sizeof stored};
  std::vector<float> expected;
  for (double v : stored) expected.push_back(static_cast<float>(v));
  EXPECT_TRUE(same_numbers(widened(w), expected));

  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  w = {DType::f16, 1, 65536, reinterpret_cast<const std::byte*>(halves.data()), 131072};
  std::vector<float> all = widened(w);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_TRUE(same_numbers(std::vector{all[i]}, std::vector{f32_from_f16(halves[i])}));
  w.dtype = DType::bf16;
  all = widened(w);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_TRUE(same_numbers(std::vector{all[i]}, std::vector{f32_from_bf16(halves[i])}));
}

TEST(Dequantize, PartsOfARowAreTheRow) {
  for (DType type : kAllTypes) {
    SCOPED_TRACE(info(type).name);
    const StoredMatrix w(type, 3, 1024);
    const std::vector<float> all = widened(w());
    const std::int64_t block = info(type).block_elements;
    for (std::int64_t begin : {std::int64_t{0}, block, 3 * block}) {
      std::vector<float> part(static_cast<std::size_t>(block));
      dequantize(w(), 2, begin, block, part.data());
      EXPECT_TRUE(same_numbers(part, std::span<const float>(all).subspan(static_cast<std::size_t>(2 * 1024 + begin),
                                                                         static_cast<std::size_t>(block))));
    }
    dequantize(w(), 0, 1024, 0, nullptr);  // nothing, at the very end
  }
}

TEST(Dequantize, RefusesWhatIsNotThere) {
  const StoredMatrix w(DType::q4_0, 2, 64);
  std::vector<float> out(64);
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const std::int64_t bad[][3] = {{-1, 0, 32}, {2, 0, 32}, {0, -32, 32},   {0, 0, -32},   {0, 64, 32},
                                 {0, 1, 32},  {0, 0, 31}, {0, kHuge, 32}, {0, 32, kHuge}};
  for (const auto& [row, begin, count] : bad) {
    try {
      dequantize(w(), row, begin, count, out.data());
      ADD_FAILURE() << row << ", " << begin << ", " << count;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::bad_input);
    }
  }
}

}  // namespace
}  // namespace regard
