#pragma once
// The number types of safetensors files (safetensors/src/tensor.rs, Dtype): all of them, so that each can be named,
// measured and copied; regard computes with a few.

#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace regard {

// In memory in the order of the public reader's Dtype: from narrow to wide, so `a < b` says which it writes later.
struct SafetensorsType {
  std::string_view name;       // "BF16", "F8_E4M3"
  int bits;                    // of one value
  std::optional<DType> dtype;  // nothing when regard cannot compute with it as stored
};

const SafetensorsType* find_safetensors_type(std::string_view name);  // nullptr when there is none
const SafetensorsType* safetensors_type(DType type);                  // nullptr for the block types

}  // namespace regard
