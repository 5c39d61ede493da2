#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/packed.h"
#include "kernels/reference_matmul.h"
#include "support/matrices.h"
#include "support/special_floats.h"
#include "support/targets.h"
#include "tensor/buffer.h"
#include "tensor/error.h"

namespace regard {
namespace {

using testing::kAllTypes;
using testing::max_error;
using testing::on_each_target;
using testing::on_thread_counts;
using testing::same_bits;
using testing::StoredMatrix;
using testing::widened;

using testing::kNan;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_rows(std::int64_t rows, std::int64_t cols, std::uint32_t seed = 7) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> x(static_cast<std::size_t>(rows * cols));
  for (float& v : x) v = number(random);
  return x;
}

std::vector<float> product(const Matrix& w, const std::vector<float>& x, std::int64_t rows) {
  std::vector<float> y(static_cast<std::size_t>(rows * w.rows), kNan);
  matmul(w, View<const float, 2>(x.data(), {rows, w.cols}), View<float, 2>(y.data(), {rows, w.rows}));
  return y;
}

// A packed matrix with its memory.
class Packed {
 public:
  explicit Packed(const Matrix& w) : memory_(packed_bytes(w)), matrix_(pack(w, memory_.data())) {}
  const PackedMatrix& operator()() const { return matrix_; }

 private:
  Buffer<std::byte> memory_;
  PackedMatrix matrix_;
};

std::vector<float> product(const PackedMatrix& w, const std::vector<float>& x, std::int64_t rows) {
  const std::int64_t cols = w.stored.cols, outputs = w.stored.rows;
  std::vector<float> y(static_cast<std::size_t>(rows * outputs), kNan);
  matmul(w, View<const float, 2>(x.data(), {rows, cols}), View<float, 2>(y.data(), {rows, outputs}));
  return y;
}

// The canonical order, said plainly.
std::vector<float> canonical(const Matrix& w, const std::vector<float>& x, std::int64_t rows) {
  const std::vector<float> weights = widened(w);
  std::vector<float> y;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t n = 0; n < w.rows; ++n) {
      float total = 0;
      for (std::int64_t block = 0; block < w.cols; block += 256) {
        float chain = 0;
        for (std::int64_t k = block; k < std::min(block + 256, w.cols); ++k)
          chain = std::fma(weights[static_cast<std::size_t>(n * w.cols + k)],
                           x[static_cast<std::size_t>(r * w.cols + k)], chain);
        total = block == 0 ? chain : total + chain;
      }
      y.push_back(total);
    }
  }
  return y;
}

// Widths: less than a vector, whole and broken panels of every form and target. Lengths: whole and broken blocks.
// Rows: every tile and every form.
TEST(Matmul, EveryTypeIsTheCanonicalSumToTheBit) {
  for (DType type : kAllTypes) {
    SCOPED_TRACE(info(type).name);
    const std::int64_t block = info(type).block_elements;
    for (std::int64_t cols : {block, std::int64_t{96}, std::int64_t{256}, std::int64_t{288}, std::int64_t{768}}) {
      if (cols % block != 0) continue;
      for (std::int64_t outputs : {1, 23, 97}) {
        const StoredMatrix w(type, outputs, cols);
        const std::vector<float> x = random_rows(12, cols), expected = canonical(w(), x, 12);
        on_each_target([&](const std::string&) {
          for (std::int64_t rows : {1, 2, 3, 4, 7, 12}) {
            const std::vector<float> y = product(w(), x, rows);
            EXPECT_TRUE(same_bits(std::span<const float>(y), std::span<const float>(expected).first(y.size())))
                << rows << " x " << cols << " -> " << outputs;
          }
        });
      }
    }
  }
}

// Packed on one target, multiplied on another: the same bits as stored. Broken strips, chains and panels; views.
TEST(Matmul, PackedWeightsGiveTheSameBits) {
  for (DType type : kAllTypes) {
    SCOPED_TRACE(info(type).name);
    const std::int64_t block = info(type).block_elements;
    if (type == DType::f32 || type == DType::f64) {
      EXPECT_FALSE(packs(type));
      continue;
    }
    for (std::int64_t cols : {block, std::int64_t{61}, std::int64_t{259}, std::int64_t{288}, std::int64_t{768}}) {
      if (cols % block != 0) continue;
      for (std::int64_t outputs : {1, 40, 105}) {
        const StoredMatrix w(type, 2 * outputs, cols);
        Matrix even = w();  // every second row
        even.rows = outputs;
        even.row_stride *= 2;
        const std::vector<float> x = random_rows(7, cols), expected = canonical(even, x, 7);
        on_each_target([&](const std::string&) {
          const Packed packed(even);
          on_each_target([&](const std::string&) {
            for (std::int64_t rows : {1, 2, 3, 4, 7}) {
              const std::vector<float> y = product(packed(), x, rows);
              EXPECT_TRUE(same_bits(std::span<const float>(y), std::span<const float>(expected).first(y.size())))
                  << rows << " x " << cols << " -> " << outputs;
            }
          });
        });
      }
    }
  }
}

TEST(Matmul, PackedWeightsAreACopyOfAboutTheSameSize) {
  for (const DType type : {DType::q4_1, DType::bf16, DType::f16}) {
    StoredMatrix w(type, 96, 512);
    const std::vector<float> x = random_rows(1, 512), expected = product(w(), x, 1);
    const Packed packed(w());
    EXPECT_EQ(packed_bytes(w()), 96 * row_bytes(type, 512));  // whole strips: as many bytes as stored
    for (std::int64_t n = 0; n < 96; ++n) std::memset(w.row(n), 0, static_cast<std::size_t>(w().row_stride));
    EXPECT_TRUE(same_bits(product(packed(), x, 1), expected));
  }
}

TEST(Matmul, WhatCannotBePackedIsRefused) {
  const auto refused = [](const Matrix& matrix) {
    try {
      const Packed packed(matrix);
    } catch (const Error& error) {
      return error.code == ErrorCode::bad_input;
    }
    return false;
  };
  const StoredMatrix plain(DType::f32, 10, 64), halves(DType::bf16, 10, 64), blocks(DType::q4_0, 10, 64),
      none(DType::q4_0, 0, 64);
  EXPECT_TRUE(refused(plain()));
  EXPECT_FALSE(refused(halves()));
  EXPECT_FALSE(refused(blocks()));
  Matrix broken = blocks();
  broken.cols = 48;
  EXPECT_TRUE(refused(broken));
  EXPECT_EQ(packed_bytes(none()), 0);
}

TEST(Matmul, PlainTypesMayHaveAnyLength) {
  on_each_target([](const std::string&) {
    for (DType type : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      SCOPED_TRACE(info(type).name);
      for (std::int64_t cols : {1, 2, 3, 5, 7, 9, 15, 63, 65, 129, 255, 257, 515}) {
        const StoredMatrix w(type, 29, cols);
        for (std::int64_t rows : {1, 2, 5}) {
          const std::vector<float> x = random_rows(rows, cols);
          EXPECT_TRUE(same_bits(product(w(), x, rows), canonical(w(), x, rows))) << rows << " x " << cols;
        }
      }
    }
  });
}

// More rows than a task takes, by any number of threads: each row is what it is alone.
TEST(Matmul, ARowHasTheSameBitsAloneAndAmongManyAndByAnyThreads) {
  constexpr std::int64_t kRows = 601, kCols = 288, kOutputs = 110;
  for (DType type : {DType::f32, DType::bf16, DType::q4_1, DType::q5_0}) {
    SCOPED_TRACE(info(type).name);
    const StoredMatrix w(type, kOutputs, kCols);
    const std::vector<float> x = random_rows(kRows, kCols);
    testing::expect_same_bits_everywhere([&] { return product(w(), x, kRows); });
    const std::vector<float> all = product(w(), x, kRows);
    for (std::int64_t r : {0, 1, 255, 256, 300, 599, 600}) {
      const std::vector<float> row(x.begin() + r * kCols, x.begin() + (r + 1) * kCols);
      const std::vector<float> alone = product(w(), row, 1);
      EXPECT_TRUE(same_bits(std::span<const float>(alone),
                            std::span<const float>(all).subspan(static_cast<std::size_t>(r * kOutputs), kOutputs)));
    }
  }
}

TEST(Matmul, OneRowBySeveralThreads) {
  for (DType type : kAllTypes) {
    SCOPED_TRACE(info(type).name);
    const StoredMatrix w(type, 1000, 256);
    for (std::int64_t rows : {1, 2}) {
      const std::vector<float> x = random_rows(rows, 256), expected = canonical(w(), x, rows);
      on_thread_counts([&](int) { EXPECT_TRUE(same_bits(product(w(), x, rows), expected)); });
    }
  }
}

// Law 1: at most twice as far from the float64 truth as a plain f32 sum.
TEST(Matmul, IsAsNearToTheTruthAsAPlainSum) {
  for (std::int64_t cols : {256, 1536, 8192}) {
    const StoredMatrix w(DType::f32, 32, cols);
    const std::vector<float> x = random_rows(16, cols);
    const View<const float, 2> rows(x.data(), {16, cols});
    std::vector<double> truth(16 * 32);
    std::vector<float> plain(16 * 32);
    reference::matmul<double>(w(), rows, View<double, 2>(truth.data(), {16, 32}));
    reference::matmul<float>(w(), rows, View<float, 2>(plain.data(), {16, 32}));
    const double allowed = 2 * max_error(plain, truth);
    EXPECT_GT(allowed, 0);
    on_each_target([&](const std::string&) { EXPECT_LE(max_error(product(w(), x, 16), truth), allowed) << cols; });
  }
}

TEST(Matmul, ASpoiltRowSpoilsOnlyItself) {
  on_each_target([](const std::string&) {
    for (DType type : {DType::f32, DType::f16, DType::q4_1, DType::q8_0}) {
      SCOPED_TRACE(info(type).name);
      const StoredMatrix w(type, 30, 512);
      for (std::int64_t rows : {2, 3, 9}) {
        const std::vector<float> clean = random_rows(rows, 512), expected = product(w(), clean, rows);
        for (float bad : {kNan, kInfinity, -kInfinity, std::numeric_limits<float>::max()}) {
          for (std::int64_t spoilt : {std::int64_t{0}, rows / 2, rows - 1}) {
            std::vector<float> x = clean;
            x[static_cast<std::size_t>(spoilt * 512 + 300)] = bad;
            const std::vector<float> y = product(w(), x, rows);
            for (std::int64_t r = 0; r < rows; ++r) {
              const auto at = static_cast<std::size_t>(r * 30);
              const auto row = std::span<const float>(y).subspan(at, 30),
                         was = std::span<const float>(expected).subspan(at, 30);
              if (r != spoilt) {
                EXPECT_TRUE(same_bits(row, was)) << bad;
              } else if (bad != std::numeric_limits<float>::max()) {
                for (float v : row) EXPECT_FALSE(std::isfinite(v));
              } else {
                EXPECT_FALSE(same_bits(row, was));
              }
            }
          }
        }
      }
    }
  });
}

TEST(Matmul, ASpoiltWeightSpoilsOnlyItsOutput) {
  on_each_target([](const std::string&) {
    StoredMatrix w(DType::f32, 30, 300);
    for (std::int64_t rows : {1, 2, 3, 9}) {
      const std::vector<float> x = random_rows(rows, 300);
      const std::vector<float> expected = product(w(), x, rows);
      for (std::int64_t output : {0, 15, 29}) {
        float kept;
        std::memcpy(&kept, w.row(output) + 4 * 299, 4);
        std::memcpy(w.row(output) + 4 * 299, &kNan, 4);
        const std::vector<float> y = product(w(), x, rows);
        for (std::size_t i = 0; i < y.size(); ++i) {
          if (static_cast<std::int64_t>(i) % 30 == output)
            EXPECT_TRUE(std::isnan(y[i]));
          else
            EXPECT_EQ(y[i], expected[i]);
        }
        std::memcpy(w.row(output) + 4 * 299, &kept, 4);
      }
    }
  });
}

// A chain starts from +0, so sums of products that are all -0 are +0, and so is the sum of nothing.
TEST(Matmul, ZerosArePositive) {
  on_each_target([](const std::string&) {
    const StoredMatrix w(DType::f32, 20, 0);
    for (std::int64_t rows : {1, 2, 6}) {
      EXPECT_TRUE(same_bits(product(w(), {}, rows), std::vector<float>(static_cast<std::size_t>(rows * 20), 0.0f)));
      for (DType type : {DType::f32, DType::bf16, DType::q4_1}) {
        const StoredMatrix v(type, 20, 288);
        const std::vector<float> x(static_cast<std::size_t>(rows * 288), -0.0f);
        EXPECT_TRUE(same_bits(product(v(), x, rows), std::vector<float>(static_cast<std::size_t>(rows * 20), 0.0f)));
      }
    }
  });
}

TEST(Matmul, RowsMayLieFarApartAndTheGapsStayAsTheyAre) {
  on_each_target([](const std::string&) {
    for (DType type : {DType::f32, DType::q4_1, DType::q6_k}) {
      SCOPED_TRACE(info(type).name);
      const StoredMatrix w(type, 53, 512);
      for (std::int64_t rows : {1, 2, 5, 13}) {
        const std::vector<float> x = random_rows(rows, 512), expected = product(w(), x, rows);
        std::vector<float> wide_x(static_cast<std::size_t>(rows * 700), kNan),
            wide_y(static_cast<std::size_t>(rows * 80), 42);
        for (std::int64_t r = 0; r < rows; ++r) std::copy_n(x.begin() + r * 512, 512, wide_x.begin() + r * 700 + 3);
        // The rows of y in reverse order.
        matmul(w(), View<const float, 2>(wide_x.data() + 3, {rows, 512}, {700, 1}),
               View<float, 2>(wide_y.data() + (rows - 1) * 80 + 5, {rows, 53}, {-80, 1}));
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t i = 0; i < 80; ++i) {
            const float got = wide_y[static_cast<std::size_t>((rows - 1 - r) * 80 + i)];
            EXPECT_EQ(got, i < 5 || i >= 58 ? 42 : expected[static_cast<std::size_t>(r * 53 + i - 5)]);
          }
        }
        // One row of x for all.
        std::vector<float> y(static_cast<std::size_t>(rows * 53));
        matmul(w(), View<const float, 2>(x.data(), {rows, 512}, {0, 1}), View<float, 2>(y.data(), {rows, 53}));
        for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], expected[i % 53]);
      }
    }
  });
}

// Rows of weights that are part of longer ones, as in a fused projection.
TEST(Matmul, WeightsMayHaveAStride) {
  const StoredMatrix all(DType::q8_0, 60, 128);
  Matrix even = all();
  even.rows = 30;
  even.row_stride *= 2;
  for (std::int64_t rows : {1, 2, 5}) {
    const std::vector<float> x = random_rows(rows, 128), every = product(all(), x, rows), half = product(even, x, rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t n = 0; n < 30; ++n)
        EXPECT_EQ(half[static_cast<std::size_t>(r * 30 + n)], every[static_cast<std::size_t>(r * 60 + 2 * n)]);
    }
  }
}

TEST(Matmul, NothingTimesSomethingIsNothing) {
  const StoredMatrix w(DType::q4_0, 10, 64), none(DType::q4_0, 0, 64);
  float untouched = 3;
  matmul(w(), View<const float, 2>(nullptr, {0, 64}), View<float, 2>(&untouched, {0, 10}));
  const std::vector<float> x = random_rows(4, 64);
  matmul(none(), View<const float, 2>(x.data(), {4, 64}), View<float, 2>(&untouched, {4, 0}));
  EXPECT_EQ(untouched, 3);
}

TEST(Matmul, RefusesShapesThatDoNotFit) {
  const StoredMatrix w(DType::q4_0, 10, 64);
  std::vector<float> x(640), y(640);
  const auto refused = [&](const Matrix& matrix, View<const float, 2> rows, View<float, 2> out) {
    try {
      matmul(matrix, rows, out);
    } catch (const Error& error) {
      return error.code == ErrorCode::bad_input && !error.hint.empty();
    }
    return false;
  };
  const View<const float, 2> rows(x.data(), {2, 64});
  const View<float, 2> out(y.data(), {2, 10});
  EXPECT_FALSE(refused(w(), rows, out));
  EXPECT_TRUE(refused(w(), View<const float, 2>(x.data(), {2, 63}), out));
  EXPECT_TRUE(refused(w(), rows, View<float, 2>(y.data(), {2, 9})));
  EXPECT_TRUE(refused(w(), rows, View<float, 2>(y.data(), {3, 10})));
  EXPECT_TRUE(refused(w(), View<const float, 2>(x.data(), {2, 64}, {128, 2}), out));
  EXPECT_TRUE(refused(w(), rows, View<float, 2>(y.data(), {2, 10}, {20, 2})));
  Matrix broken = w();
  broken.cols = 48;  // not whole blocks
  EXPECT_TRUE(refused(broken, View<const float, 2>(x.data(), {2, 48}), out));
  broken = w();
  broken.rows = -1;
  EXPECT_TRUE(refused(broken, rows, View<float, 2>(y.data(), {2, -1})));
}

}  // namespace
}  // namespace regard
