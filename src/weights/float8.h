#pragma once
// Numbers of eight bits, to f32: alone, and matrices of them with the scales they are stored with. Value = code x
// scale, rounded once to f32.
// Codes: OCP 8-bit Floating Point (OFP8) 1.0, OCP Microscaling Formats 1.0 (E8M0), arXiv 2206.02915 (FNUZ).

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/buffer.h"
#include "weights/safetensors.h"

namespace regard {

enum class Float8 : std::uint8_t { e4m3, e5m2, e4m3fnuz, e5m2fnuz, e8m0 };

std::optional<Float8> float8_from_name(std::string_view safetensors_type);  // "F8_E4M3"
float f32_from_float8(Float8 type, std::uint8_t code);

// Elements of a matrix that share a scale. The last block of a row or column may be smaller.
struct ScaleBlock {
  std::int64_t rows = 0, cols = 0;
};

// A matrix [rows, cols] stored as F8_E4M3, F8_E5M2 or one of the FNUZ types, widened to f32 [rows, cols], row-major.
// `scale`: null when the codes are the values; else of shape [] or [1] (one for all), [rows] or [rows, 1] (one per
// row), or [n, m] (one per block): `weight_scale_inv` and `weight_scale` mean the same, a factor, whatever the name
// says (transformers finegrained_fp8.py). Stored as F32, BF16, F16, F8_E8M0, or U8 (E8M0 too). `block`:
// quantization_config.weight_block_size; without it blocks are what divides the matrix into n x m. `where`: file and
// tensor, for errors: bad_input for shapes that do not fit each other, unsupported for another type.
Tensor<float, 2> widen_float8(std::string_view where, const StoredTensor& weight, const StoredTensor* scale,
                              std::optional<ScaleBlock> block = {});

}  // namespace regard
