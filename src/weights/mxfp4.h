#pragma once
// MXFP4 (OCP Microscaling Formats 1.0): 32 numbers of four bits (E2M1) share a power of two (E8M0), to f32. Two places
// keep them in two orders.

#include <cstdint>
#include <string_view>

#include "tensor/buffer.h"
#include "weights/safetensors.h"

namespace regard {

inline constexpr std::int64_t kMxfp4Block = 32;  // numbers

// gpt-oss in safetensors: `NAME_blocks` U8 [..., rows, groups, 16] and `NAME_scales` U8 [..., rows, groups]; byte j
// holds the numbers 2j (low four bits) and 2j + 1. Result [all rows, groups * 32]: with experts in front, theirs one
// below the other. (transformers, integrations/mxfp4.py, convert_moe_packed_tensors, before it transposes the last two
// axes. The scale 255 is NaN here, as the standard says.) Errors: bad_input where the shapes do not fit each other,
// unsupported for another type than U8; `where` is file and tensor.
Tensor<float, 2> widen_mxfp4(std::string_view where, const StoredTensor& blocks, const StoredTensor& scales);
// The same numbers in the order of DType::mxfp4 (GGUF's: the scale, then bytes of the numbers j and j + 16), 17 bytes
// of `out` for each block, of which there are scales.bytes. Error{bad_input} also for the scale 255.
void order_as_gguf(std::string_view where, const StoredTensor& blocks, const StoredTensor& scales, std::byte* out);

}  // namespace regard
