#pragma once
// GGUF files, version 2 and 3, little endian: metadata and the places of the tensors. Layout: ggml docs/gguf.md.
// Nothing is copied that is large: strings and arrays are windows on the mapped file, so a GgufFile lives no longer
// than the MappedFile it was read from.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensor/dtype.h"
#include "weights/mapped_file.h"

namespace regard {

enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
std::string_view name_of(GgufType type);

// A name out of a file as it can be shown in a message: quoted, bytes that are no printable ASCII as \xNN, cut when
// long.
std::string in_quotes(std::string_view text);

// An array of one plain type. Numbers stay where they are in the file (any alignment); strings are found once.
struct GgufArray {
  GgufType element = GgufType::u8;
  std::int64_t count = 0;
  const std::byte* data = nullptr;        // numbers and bools
  std::vector<std::string_view> strings;  // strings

  double number(std::int64_t i) const;         // any numeric element type
  std::int64_t integer(std::int64_t i) const;  // any integer element type; u64 past 2^63 - 1: Error{bad_input}
};

// Unsigned integers widen to u64, signed ones to i64, floats to f64.
struct GgufValue {
  GgufType type = GgufType::u8;  // as stored
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray> value;
};

// A tensor type of ggml. Ids that were never given out or were withdrawn are not in the table.
struct GgufTensorType {
  std::uint32_t id;
  std::string_view name;  // as ggml calls it: "Q4_1", "IQ2_XXS"
  int block_elements, block_bytes;
  std::optional<DType> dtype;  // nothing when regard cannot compute with it
};
const GgufTensorType* find_gguf_tensor_type(std::uint32_t id);

struct GgufTensor {
  const GgufTensorType* type = nullptr;  // never null in a file that was read
  std::vector<std::int64_t> shape;       // fastest first as stored: {in, out} for a linear layer; 0 to 4 axes
  std::int64_t offset = 0;               // bytes from the start of the file
  std::int64_t bytes = 0;
};

struct GgufFile {
  std::uint32_t version = 0;
  std::string file;  // its path, for messages
  std::int64_t alignment = 32;
  std::int64_t data_offset = 0;  // where the first tensor's bytes start
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::map<std::string, GgufTensor, std::less<>> tensors;

  // Typed access. A key of another type, or out of the range of the result, is Error{bad_input} that names file and
  // key. The optional forms return nothing for a key that is not there; the others throw.
  std::optional<std::int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_number(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;
  std::optional<std::string_view> find_string(std::string_view key) const;
  const GgufArray* find_array(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> find_integers(std::string_view key) const;  // an array of them
  std::int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  std::string_view string(std::string_view key) const;
};

// Reads and checks everything but the weights themselves. Errors: bad_input naming the file, the byte and the key or
// tensor; unsupported for version 1, versions to come and big-endian files. Memory used is bounded by a small multiple
// of the file.
GgufFile read_gguf(const MappedFile& file);

}  // namespace regard
