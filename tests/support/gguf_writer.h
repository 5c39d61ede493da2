#pragma once
// Writes GGUF files for tests: right ones, and, because every count and length can be overridden, wrong ones.

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace regard::testing {

// ggml's id of a type.
inline std::uint32_t ggml_id(DType type) {
  switch (type) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::q4_0:
      return 2;
    case DType::q4_1:
      return 3;
    case DType::q5_0:
      return 6;
    case DType::q5_1:
      return 7;
    case DType::q8_0:
      return 8;
    case DType::q2_k:
      return 10;
    case DType::q3_k:
      return 11;
    case DType::q4_k:
      return 12;
    case DType::q5_k:
      return 13;
    case DType::q6_k:
      return 14;
    case DType::iq4_nl:
      return 20;
    case DType::iq4_xs:
      return 23;
    case DType::mxfp4:
      return 39;
    case DType::f64:
      return 28;
    case DType::bf16:
      return 30;
  }
  return 0xffffffffu;
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

class GgufWriter {
 public:
  struct Entry {
    std::string key;
    std::uint32_t type = 0;
    std::string value;                        // encoded
    std::optional<std::uint64_t> key_length;  // lie about it
  };
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> shape;  // fastest first
    std::uint32_t type = 0;            // ggml id
    std::string data;
    std::optional<std::uint32_t> n_dims;  // lies
    std::optional<std::uint64_t> offset;
    std::optional<std::uint64_t> name_length;
  };

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // what is padded to; say it in general.alignment when it is not 32
  std::optional<std::uint64_t> n_tensors, n_entries;  // lies
  std::vector<Entry> entries;
  std::vector<Tensor> tensors;

  static std::string encoded(std::string_view text) {
    return little_endian<std::uint64_t>(text.size()) + std::string(text);
  }

  void raw(std::string key, std::uint32_t type, std::string value) {
    entries.push_back({std::move(key), type, std::move(value), {}});
  }
  void u32(std::string key, std::uint32_t v) { raw(std::move(key), 4, little_endian(v)); }
  void i32(std::string key, std::int32_t v) { raw(std::move(key), 5, little_endian(v)); }
  void f32(std::string key, float v) { raw(std::move(key), 6, little_endian(v)); }
  void boolean(std::string key, bool v) { raw(std::move(key), 7, std::string(1, v ? '\1' : '\0')); }
  void string(std::string key, std::string_view v) { raw(std::move(key), 8, encoded(v)); }
  void u64(std::string key, std::uint64_t v) { raw(std::move(key), 10, little_endian(v)); }
  void f64(std::string key, double v) { raw(std::move(key), 12, little_endian(v)); }
  void array(std::string key, std::uint32_t element, std::uint64_t count, std::string_view values) {
    raw(std::move(key), 9, little_endian(element) + little_endian(count) + std::string(values));
  }
  void strings(std::string key, const std::vector<std::string>& values) {
    std::string all;
    for (const std::string& v : values) all += encoded(v);
    array(std::move(key), 8, values.size(), all);
  }
  void i32s(std::string key, const std::vector<std::int32_t>& values) {
    array(std::move(key), 5, values.size(), bytes_of(values));
  }
  void f32s(std::string key, const std::vector<float>& values) {
    array(std::move(key), 6, values.size(), bytes_of(values));
  }
  void tensor(std::string name, std::vector<std::uint64_t> shape, DType type, std::string data) {
    tensors.push_back({std::move(name), std::move(shape), ggml_id(type), std::move(data), {}, {}, {}});
  }
  void tensor(std::string name, std::vector<std::uint64_t> shape, const std::vector<float>& values) {
    tensor(std::move(name), std::move(shape), DType::f32, bytes_of(values));
  }
  void remove(std::string_view key) {
    std::erase_if(entries, [&](const Entry& e) { return e.key == key; });
  }
  void remove_tensor(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
  }
  Tensor& tensor_named(std::string_view name) {
    for (Tensor& t : tensors)
      if (t.name == name) return t;
    std::abort();
  }

  // Everything before the tensors' data, padding included.
  std::string header() const {
    std::string out = magic + little_endian(version) +
                      little_endian<std::uint64_t>(n_tensors.value_or(tensors.size())) +
                      little_endian<std::uint64_t>(n_entries.value_or(entries.size()));
    for (const Entry& e : entries)
      out +=
          little_endian<std::uint64_t>(e.key_length.value_or(e.key.size())) + e.key + little_endian(e.type) + e.value;
    std::uint64_t offset = 0;
    for (const Tensor& t : tensors) {
      out += little_endian<std::uint64_t>(t.name_length.value_or(t.name.size())) + t.name +
             little_endian<std::uint32_t>(t.n_dims.value_or(static_cast<std::uint32_t>(t.shape.size())));
      for (std::uint64_t ne : t.shape) out += little_endian(ne);
      out += little_endian(t.type) + little_endian<std::uint64_t>(t.offset.value_or(offset));
      offset += padded(t.data.size());
    }
    out.resize(padded(out.size()), '\0');
    return out;
  }
  std::string bytes() const {
    std::string out = header();
    for (const Tensor& t : tensors) {
      out += t.data;
      out.resize(padded(out.size()), '\0');
    }
    return out;
  }
  void write(const std::filesystem::path& path) const { std::ofstream(path, std::ios::binary) << bytes(); }

  template <typename T>
  static std::string bytes_of(const std::vector<T>& values) {
    std::string out(values.size() * sizeof(T), '\0');
    if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
    return out;
  }

 private:
  std::uint64_t padded(std::uint64_t n) const { return (n + alignment - 1) / alignment * alignment; }
};

}  // namespace regard::testing
