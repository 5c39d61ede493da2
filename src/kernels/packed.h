#pragma once
// Weights once more in memory, in the order in which the dense product wants them.
//
// As they are stored, a row's numbers lie side by side, and the product, whose lanes are rows, must turn them every
// time: for one row of x that takes as long as the product itself. Packed, they are turned once: strips of 16 rows,
// the same on every target. Numbers stay as they are: quantised ones of 4 or 8 bits (src/kernels/words-inl.h), bf16 and
// f16 (src/kernels/half_strips-inl.h). No bit of any product changes (law 3). The stored weights are not touched (law
// 8).

#include <cstddef>
#include <cstdint>

#include "kernels/matmul.h"

namespace regard {

struct PackedMatrix {
  Matrix stored;                      // what was packed; its bytes are no longer read
  const std::byte* strips = nullptr;  // owned by whoever packed
};

// Whether a type is packed: all but f32, which was no faster packed, and f64, which is rare.
bool packs(DType type);
// Bytes that w will take; a multiple of 64. Error{bad_input} if its type is not packed or its rows are not whole
// blocks.
std::int64_t packed_bytes(const Matrix& w);
// Packs w into packed_bytes(w) bytes at `memory`, aligned to 64.
PackedMatrix pack(const Matrix& w, std::byte* memory);

// As of the stored matrix, to the bit.
void matmul(const PackedMatrix& w, View<const float, 2> x, View<float, 2> y);

}  // namespace regard
