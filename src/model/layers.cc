#include "model/layers.h"

#include "kernels/activation.h"
#include "kernels/norm.h"

namespace regard {

void apply(const Linear& linear, View<const float, 2> x, View<float, 2> y) {
  if (linear.packed.strips != nullptr)
    matmul(linear.packed, x, y);
  else
    matmul(linear.weight, x, y);
  if (!linear.bias.empty()) add_bias(linear.bias.data(), y);
}

void apply(const Norm& norm, const ModelConfig& c, View<const float, 2> x, View<float, 2> y) {
  if (c.norm == NormKind::rms)
    rms_norm(x, norm.weight.data(), c.norm_epsilon, c.norm_weight_plus_one, y);
  else
    layer_norm(x, norm.weight.data(), norm.bias.empty() ? nullptr : norm.bias.data(), c.norm_epsilon, y);
}

Problem attention_problem(const ModelConfig& config, std::int64_t layer) {
  Problem problem;
  problem.kv_heads = config.kv_heads;
  problem.value_channels = config.value_dim;
  problem.mask.causal = true;
  if (config.window[layer] > 0) problem.mask.window_left = config.window[layer];
  problem.scale = config.attention_scale;
  problem.softcap = config.attention_softcap;
  return problem;
}

}  // namespace regard
