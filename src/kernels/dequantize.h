#pragma once
// Stored weights -> f32, one row at a time. Formulas: ggml-quants.c; each value is the mathematical one on the stored
// bits, rounded as the formula here says (the same operations in the vector kernels).

#include <cstdint>

#include "kernels/matmul.h"

namespace regard {

// out[0 .. count) = W[row, begin .. begin + count). begin and count must be whole blocks of the type.
void dequantize(const Matrix& w, std::int64_t row, std::int64_t begin, std::int64_t count, float* out);

}  // namespace regard
