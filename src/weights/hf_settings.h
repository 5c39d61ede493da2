#pragma once
// What the configurations of several families say in the same way.

#include <cstdint>
#include <string_view>

#include "weights/hf_keys.h"
#include "weights/model_config.h"

namespace regard {

// Sizes by the names most families use; heads, kv_heads, head_dim, attention_scale (1 / sqrt(D)), no windows.
ModelConfig hf_sizes(HfKeys& keys);
// The parts of it for families with other names: heads from `heads`, D = width / heads where `head_dim` is not said.
void hf_heads(HfKeys& keys, ModelConfig& c, std::int64_t heads, std::int64_t kv_heads,
              std::string_view head_dim = "head_dim");

Activation hf_activation(HfKeys& keys, std::string_view key, std::string_view otherwise);

struct HfRope {
  double base = 10000;
  std::string_view base_key = "rope_theta";
  double partial = 1;
  std::string_view partial_key = "partial_rotary_factor";
  double local_base = 0;  // 0: the same for layers with a window
  std::string_view local_base_key = {};
};
// rope_parameters (one, or one per layer type), or the older rope_theta and rope_scaling.
void hf_rope(HfKeys& keys, ModelConfig& c, const HfRope& rope = {});

// layer_types, else layer l is windowed where `windowed(l)` says so. A window of 0: none.
template <class Windowed>
void hf_windows(HfKeys& keys, ModelConfig& c, std::int64_t window, const Windowed& windowed);

// layer_types of the file, where it has them: true where windowed.
std::vector<bool> hf_layer_types(HfKeys& keys, const ModelConfig& c);

template <class Windowed>
void hf_windows(HfKeys& keys, ModelConfig& c, std::int64_t window, const Windowed& windowed) {
  const std::vector<bool> types = hf_layer_types(keys, c);
  for (std::int64_t l = 0; l < c.layers; ++l)
    c.window[static_cast<std::size_t>(l)] =
        (types.empty() ? windowed(l) : static_cast<bool>(types[static_cast<std::size_t>(l)])) ? window : 0;
}

inline Bias has_bias(bool flag) { return flag ? Bias::yes : Bias::no; }

}  // namespace regard
