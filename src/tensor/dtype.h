#pragma once
// Every stored number type: plain ones and the block-quantised types of GGUF files.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace regard {

enum class DType : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4
};

struct DTypeInfo {
  std::string_view name;  // "f32", "q4_1"
  int block_elements;     // 1 for plain types; 32 or 256 for quantised ones
  int block_bytes;
};

// Facts about a type. Block sizes: ggml-common.h, static asserts.
const DTypeInfo& info(DType type);

// Bytes of a row of `elements`, which must be a multiple of the type's block.
std::int64_t row_bytes(DType type, std::int64_t elements);

}  // namespace regard
