#pragma once
// Real weights, for the tests that read them. ./check fetches them and names their folder in REGARD_TEST_MODELS.

#include <cstdlib>
#include <filesystem>
#include <string>

namespace regard::testing {

// The file or the folder of a model of the catalogue ("smollm2", "gemma3-270m", "minilm"); empty when it is not on this
// machine, and then the test says so and skips:
//   const std::filesystem::path path = real_model("smollm2");
//   if (path.empty()) GTEST_SKIP() << "SmolLM2 is not here: ./check fetches it";
inline std::filesystem::path real_model(const std::string& name) {
  const char* folder = std::getenv("REGARD_TEST_MODELS");
  if (folder == nullptr || *folder == '\0') return {};
  const std::filesystem::path file = std::filesystem::path(folder) / (name + ".gguf");
  if (std::filesystem::is_regular_file(file)) return file;
  const std::filesystem::path model = std::filesystem::path(folder) / name;
  return std::filesystem::is_regular_file(model / "config.json") ? model : std::filesystem::path();
}

}  // namespace regard::testing
