#pragma once
// Real weights, for the tests that read them. ./check fetches them and names their folder in REGARD_TEST_MODELS.

#include <cstdlib>
#include <filesystem>
#include <string>

namespace regard::testing {

// The file of a model of the catalogue ("smollm2", "gemma3-270m"); empty when it is not on this machine, and then the
// test says so and skips:
//   const std::filesystem::path path = real_model("smollm2");
//   if (path.empty()) GTEST_SKIP() << "SmolLM2 is not here: ./check fetches it";
inline std::filesystem::path real_model(const std::string& name) {
  const char* folder = std::getenv("REGARD_TEST_MODELS");
  if (folder == nullptr || *folder == '\0') return {};
  std::filesystem::path path = std::filesystem::path(folder) / (name + ".gguf");
  return std::filesystem::is_regular_file(path) ? path : std::filesystem::path();
}

}  // namespace regard::testing
