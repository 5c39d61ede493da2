#pragma once
// A model of tests/data/families in memory, to be changed and written as a folder of its own.

#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/safetensors_builder.h"
#include "support/temp_folder.h"
#include "weights/safetensors.h"

namespace regard::testing {

struct HfTensor {
  std::string format;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

inline HfTensor f32_tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  HfTensor tensor{"F32", std::move(shape), std::string(values.size() * 4, '\0')};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

struct HfFolder {
  explicit HfFolder(const std::string& family) {
    const std::filesystem::path folder = std::filesystem::path(REGARD_TEST_DATA) / "families" / family;
    config = nlohmann::json::parse(read_file(folder / "config.json"));
    const SafetensorsFiles files = read_safetensors(folder);
    for (const auto& [name, tensor] : files.tensors)
      tensors[name] = {std::string(tensor.format), tensor.shape,
                       std::string(reinterpret_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes))};
  }

  // Only tensors whose name `chosen` accepts.
  template <class Chosen>
  std::string file(const Chosen& chosen) const {
    SafetensorsBuilder builder;
    for (const auto& [name, tensor] : tensors)
      if (chosen(name)) builder.add(name, tensor.format, tensor.shape, tensor.bytes);
    return builder.bytes();
  }
  void write(const std::filesystem::path& folder) const {
    write_file(folder / "config.json", config.dump());
    write_file(folder / "model.safetensors", file([](const std::string&) { return true; }));
  }

  nlohmann::json config;
  std::map<std::string, HfTensor> tensors;
};

}  // namespace regard::testing
