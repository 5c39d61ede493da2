#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weights/model_config.h"

namespace regard {

// A tensor that a configuration calls for, by its canonical name: GGUF's, and "blk.0.ffn_up.3.weight" for an expert. A
// vector has one row.
struct ExpectedTensor {
  std::string name;
  std::int64_t rows = 0, cols = 0;
  bool vector = false;
  bool optional = false;
};

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

// The router of a layer that is a mixture.
ExpectedTensor expected_router(const ModelConfig& config, std::int64_t layer);

}  // namespace regard
