#pragma once
// Safetensors files for tests, as right or as wrong as they are asked to be.

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace regard::testing {

inline std::string safetensors(const std::string& header, const std::string& data = {}) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

class SafetensorsBuilder {
 public:
  // `bytes` as stored; they come one after the other, in the order of adding.
  void add(const std::string& name, const std::string& format, const std::vector<std::int64_t>& shape,
           const std::string& bytes) {
    entries_ += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                            entries_.empty() ? "" : ",", name, format, fmt::join(shape, ","), data_.size(),
                            data_.size() + bytes.size());
    data_ += bytes;
  }
  void add_f32(const std::string& name, const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
    std::string bytes(values.size() * 4, '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    add(name, "F32", shape, bytes);
  }
  void metadata(const std::string& key, const std::string& value) {
    metadata_ += fmt::format("{}\"{}\":\"{}\"", metadata_.empty() ? "" : ",", key, value);
  }
  std::string header() const {
    const std::string meta = metadata_.empty() ? "" : "\"__metadata__\":{" + metadata_ + "}";
    return "{" + meta + (meta.empty() || entries_.empty() ? "" : ",") + entries_ + "}";
  }
  std::string bytes() const { return safetensors(header(), data_); }

 private:
  std::string entries_, metadata_, data_;
};

}  // namespace regard::testing
