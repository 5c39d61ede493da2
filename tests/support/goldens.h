#pragma once
// The values that the public implementations gave: tests/data/goldens, where they are told apart.

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace regard::testing {

inline nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(std::string(REGARD_TEST_DATA) + "/goldens/" + name);
  if (!file) throw std::runtime_error("no " + name);
  return nlohmann::json::parse(file);
}

}  // namespace regard::testing
