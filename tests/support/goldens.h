#pragma once
// The values that the public implementations gave: tests/data/goldens, where they are told apart.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "model/model.h"
#include "support/models.h"

namespace regard::testing {

inline nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(std::string(REGARD_TEST_DATA) + "/goldens/" + name);
  if (!file) throw std::runtime_error("no " + name);
  return nlohmann::json::parse(file);
}

// A test for every model that there are goldens of: INSTANTIATE_TEST_SUITE_P(Real, ThisTest, golden_models()).
class GoldenTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::filesystem::path path = real_model(name() == "gemma3" ? "gemma3-270m" : name());
    if (path.empty()) GTEST_SKIP() << name() << " is not here: ./check fetches it";
    model_.emplace(Model::load(path));
  }
  std::string name() const { return GetParam(); }  // of its goldens
  const Model& model() const { return *model_; }
  nlohmann::json prompts() const { return read_golden("causal_" + name() + ".json")["prompts"]; }
  nlohmann::json long_prompts() const { return read_golden("causal_long_" + name() + ".json")["prompts"]; }
  nlohmann::json plain_f32() const { return read_golden("plain_f32_" + name() + ".json"); }

 private:
  std::optional<Model> model_;
};

inline auto golden_models() { return ::testing::Values("smollm2", "gemma3"); }

}  // namespace regard::testing
