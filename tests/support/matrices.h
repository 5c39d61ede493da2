#pragma once
// Weights of every stored type for tests of the dense product.

#include <cstring>
#include <random>
#include <vector>

#include "kernels/dequantize.h"
#include "kernels/matmul.h"
#include "tensor/half.h"

namespace regard::testing {

inline constexpr DType kAllTypes[] = {DType::f32,  DType::f16,  DType::bf16,   DType::f64,    DType::q4_0, DType::q4_1,
                                      DType::q5_0, DType::q5_1, DType::q8_0,   DType::q2_k,   DType::q3_k, DType::q4_k,
                                      DType::q5_k, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4};

// Where in a block its f16 scale and minimum are (-1: there is none).
struct Halves {
  int scale, minimum;
};
inline Halves halves_of(DType type) {
  switch (type) {
    case DType::q4_1:
    case DType::q5_1:
    case DType::q4_k:
    case DType::q5_k:
      return {0, 2};
    case DType::q2_k:
      return {80, 82};
    case DType::q3_k:
      return {108, -1};
    case DType::q6_k:
      return {208, -1};
    default:
      return {0, -1};
  }
}

// Random weights of one type, of about unit size, in memory that ends with the last byte of the last row (so that a
// sanitizer sees reads beyond it) and starts at an odd address.
class StoredMatrix {
 public:
  StoredMatrix(DType type, std::int64_t rows, std::int64_t cols, std::uint32_t seed = 1)
      : bytes_(static_cast<std::size_t>(1 + rows * row_bytes(type, cols))) {
    matrix_ = {type, rows, cols, bytes_.data() + 1, row_bytes(type, cols)};
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> number(-1, 1);
    std::byte* at = bytes_.data() + 1;
    const DTypeInfo& kind = info(type);
    const auto put = [](std::byte* to, auto value) { std::memcpy(to, &value, sizeof(value)); };
    if (kind.block_elements == 1) {
      for (std::int64_t i = 0; i < rows * cols; ++i, at += kind.block_bytes) {
        const float v = number(random);
        switch (type) {
          case DType::f32:
            put(at, v);
            break;
          case DType::f16:
            put(at, f16_from_f32(v));
            break;
          case DType::bf16:
            put(at, bf16_from_f32(v));
            break;
          default:
            put(at, static_cast<double>(v) + 1e-9 * number(random));
            break;
        }
      }
      return;
    }
    for (std::size_t i = 1; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(random() & 255);
    if (type == DType::mxfp4) {  // its scale is the exponent of a power of two
      for (; at < bytes_.data() + bytes_.size(); at += kind.block_bytes) put(at, std::uint8_t(120 + random() % 6));
      return;
    }
    const Halves halves = halves_of(type);
    for (; at < bytes_.data() + bytes_.size(); at += kind.block_bytes) {
      put(at + halves.scale, f16_from_f32(0.03f * number(random)));
      if (halves.minimum >= 0) put(at + halves.minimum, f16_from_f32(0.1f * number(random)));
    }
  }
  const Matrix& operator()() const { return matrix_; }
  std::byte* row(std::int64_t n) { return bytes_.data() + 1 + n * matrix_.row_stride; }

 private:
  std::vector<std::byte> bytes_;
  Matrix matrix_;
};

// The widened rows: [rows, cols].
inline std::vector<float> widened(const Matrix& w) {
  std::vector<float> values(static_cast<std::size_t>(w.rows * w.cols));
  for (std::int64_t n = 0; n < w.rows; ++n) dequantize(w, n, 0, w.cols, values.data() + n * w.cols);
  return values;
}

}  // namespace regard::testing
