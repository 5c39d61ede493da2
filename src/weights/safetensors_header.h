#pragma once
// The header of one safetensors file: 8 bytes of length (little endian), JSON, then the tensors' bytes, which the
// header must describe without a hole and without an overlap (safetensors/src/tensor.rs, Metadata::validate).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weights/mapped_file.h"
#include "weights/safetensors_type.h"

namespace regard {

struct SafetensorsEntry {
  const SafetensorsType* type = nullptr;  // never null in a header that was read
  std::vector<std::int64_t> shape;        // row-major; no axis for a single value, 0 for none
  std::int64_t begin = 0, end = 0;        // bytes from the start of the data
};

struct SafetensorsHeader {
  std::int64_t data_offset = 0;  // bytes from the start of the file
  std::map<std::string, SafetensorsEntry, std::less<>> entries;
  std::map<std::string, std::string> metadata;
};

// Errors: bad_input naming the file and the tensor: every rule of the format, each number in range, no key twice.
// unsupported for a number type that the format does not have. Memory used is bounded by a small multiple of the file.
SafetensorsHeader read_safetensors_header(const MappedFile& file);

}  // namespace regard
