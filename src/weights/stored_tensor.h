#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace regard {

struct StoredTensor {
  std::string format;               // as the file says: "BF16", "F8_E4M3"
  std::optional<DType> dtype;       // those regard computes with: F32, F16, BF16, F64
  std::vector<std::int64_t> shape;  // row-major: {out, in} for a linear layer; no axis for a single value
  const std::byte* data = nullptr;  // in the mapping of `file`
  std::int64_t bytes = 0;
  std::size_t file = 0;  // index into the files' mappings
};
using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

}  // namespace regard
