#pragma once
// Which keys of a text a row may read in a layer, and which rows may read a key: what the mask of attention_problem()
// (model/layers.h) says, for who plans by it.

#include <algorithm>
#include <cstdint>

#include "attention/visibility.h"
#include "weights/model_config.h"

namespace regard {

// The keys that `row` of a text of `tokens` tokens sees; itself is always among them.
inline KeyRange visible_keys(const ModelConfig& config, std::int64_t layer, std::int64_t row, std::int64_t tokens) {
  KeyRange keys{0, config.causal ? std::min(row + 1, tokens) : tokens};
  if (const std::int64_t window = config.window[layer]; window > 0) {
    keys.begin = std::max<std::int64_t>(0, row + 1 - window);
    keys.end = std::min(keys.end, row + window);
  }
  return keys;
}

// The rows that see `key`.
inline KeyRange rows_that_see(const ModelConfig& config, std::int64_t layer, std::int64_t key, std::int64_t tokens) {
  if (!config.causal) return visible_keys(config, layer, key, tokens);
  const std::int64_t window = config.window[layer];
  return {key, window > 0 ? std::min(tokens, key + window) : tokens};
}

}  // namespace regard
