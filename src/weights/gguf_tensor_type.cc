#include <algorithm>

#include "weights/gguf.h"

namespace regard {

// Ids and blocks: ggml.h (enum ggml_type) and the static asserts of ggml-common.h. 4 and 5 (Q4_2, Q4_3), 31-33
// (Q4_0_4_4...) and 36-38 (IQ4_NL_4_4...) were withdrawn.
const GgufTensorType* find_gguf_tensor_type(std::uint32_t id) {
  static constexpr std::nullopt_t no = std::nullopt;
  static constexpr GgufTensorType table[] = {
      {0, "F32", 1, 4, DType::f32},
      {1, "F16", 1, 2, DType::f16},
      {2, "Q4_0", 32, 18, DType::q4_0},
      {3, "Q4_1", 32, 20, DType::q4_1},
      {6, "Q5_0", 32, 22, DType::q5_0},
      {7, "Q5_1", 32, 24, DType::q5_1},
      {8, "Q8_0", 32, 34, DType::q8_0},
      {9, "Q8_1", 32, 36, no},
      {10, "Q2_K", 256, 84, DType::q2_k},
      {11, "Q3_K", 256, 110, DType::q3_k},
      {12, "Q4_K", 256, 144, DType::q4_k},
      {13, "Q5_K", 256, 176, DType::q5_k},
      {14, "Q6_K", 256, 210, DType::q6_k},
      {15, "Q8_K", 256, 292, no},
      {16, "IQ2_XXS", 256, 66, no},
      {17, "IQ2_XS", 256, 74, no},
      {18, "IQ3_XXS", 256, 98, no},
      {19, "IQ1_S", 256, 50, no},
      {20, "IQ4_NL", 32, 18, DType::iq4_nl},
      {21, "IQ3_S", 256, 110, no},
      {22, "IQ2_S", 256, 82, no},
      {23, "IQ4_XS", 256, 136, DType::iq4_xs},
      {24, "I8", 1, 1, no},
      {25, "I16", 1, 2, no},
      {26, "I32", 1, 4, no},
      {27, "I64", 1, 8, no},
      {28, "F64", 1, 8, DType::f64},
      {29, "IQ1_M", 256, 56, no},
      {30, "BF16", 1, 2, DType::bf16},
      {34, "TQ1_0", 256, 54, no},
      {35, "TQ2_0", 256, 66, no},
      {39, "MXFP4", 32, 17, DType::mxfp4},
      {40, "NVFP4", 64, 36, no},
      {41, "Q1_0", 128, 18, no},
      {42, "Q2_0", 64, 18, no},
  };
  const auto* found = std::find_if(std::begin(table), std::end(table), [&](const auto& t) { return t.id == id; });
  return found == std::end(table) ? nullptr : found;
}

}  // namespace regard
