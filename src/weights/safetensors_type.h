#pragma once
// The number types of safetensors files (safetensors/src/tensor.rs, Dtype): all of them, so that each can be named,
// measured and copied; regard computes with a few.

#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace regard {

struct SafetensorsType {
  std::string_view name;       // "BF16", "F8_E4M3"
  int bits;                    // of one value
  std::optional<DType> dtype;  // nothing when regard cannot compute with it as stored
};

const SafetensorsType* find_safetensors_type(std::string_view name);  // nullptr when there is none

}  // namespace regard
