#pragma once
// The dense product of activations with weights as they are stored.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/view.h"

namespace regard {

// Weights of a linear layer, [rows = outputs N, cols = inputs K], row-major, in any DType, usually inside a mapped
// file. No alignment is assumed beyond one byte. Nothing is owned and nothing is ever rewritten (law 8).
struct Matrix {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::byte* data = nullptr;
  std::int64_t row_stride = 0;  // bytes from one row to the next

  const std::byte* row(std::int64_t n) const { return data + n * row_stride; }
};

// y[r, n] = sum over k of W[n, k] x[r, k]      x: [R, K], y: [R, N]; inner strides must be 1.
// Canonical order (law 3): k in blocks of 256 anchored at 0; inside a block one FMA chain over k ascending that starts
// from +0; blocks added in order to the first block's value. W[n, k] is the stored value rounded once to f32 (each
// type's formula in dequantize.h). So y[r, n] has the same bits for any R, any thread count, any target. Bad shapes:
// Error{bad_input}.
void matmul(const Matrix& w, View<const float, 2> x, View<float, 2> y);

}  // namespace regard
