#include "model/layers.h"

#include <algorithm>
#include <numeric>

#include "kernels/activation.h"
#include "kernels/norm.h"
#include "kernels/softmax.h"

namespace regard {

void apply(const Linear& linear, View<const float, 2> x, View<float, 2> y) {
  if (linear.packed.strips != nullptr)
    matmul(linear.packed, x, y);
  else
    matmul(linear.weight, x, y);
  if (!linear.bias.empty()) add_bias(linear.bias.data(), y);
}

void apply(const Norm& norm, const ModelConfig& c, View<const float, 2> x, View<float, 2> y) {
  if (norm.weight.empty()) {
    if (x.data != y.data)
      for (std::int64_t r = 0; r < x.shape[0]; ++r) std::copy_n(&x(r, 0), x.shape[1], &y(r, 0));
  } else if (c.norm == NormKind::rms)
    rms_norm(x, norm.weight.data(), c.norm_epsilon, c.norm_weight_plus_one, y);
  else
    layer_norm(x, norm.weight.data(), norm.bias.empty() ? nullptr : norm.bias.data(), c.norm_epsilon, y);
}

// The best by logit (of equals the lower), which is also the best by softmax.
Routes routes(const Mixture& mixture, View<const float, 2> logits) {
  const std::int64_t rows = logits.shape[0], n = logits.shape[1], used = mixture.used;
  Routes all;
  std::vector<float> p(static_cast<std::size_t>(n));
  std::vector<std::int32_t> order(static_cast<std::size_t>(n));
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = &logits(r, 0);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return row[a] > row[b]; });
    std::sort(order.begin(), order.begin() + used);
    if (mixture.renormalise) {
      for (std::int64_t i = 0; i < used; ++i) p[i] = row[order[i]];
      softmax(p.data(), p.data(), used);
    } else {
      std::vector<float> whole(row, row + n);
      softmax(whole.data(), whole.data(), n);
      for (std::int64_t i = 0; i < used; ++i) p[i] = whole[order[i]];
    }
    all.expert.insert(all.expert.end(), order.begin(), order.begin() + used);
    all.weight.insert(all.weight.end(), p.begin(), p.begin() + used);
  }
  return all;
}

namespace {

Problem plain_problem(const ModelConfig& c, std::int64_t layer) {
  Problem problem;
  problem.kv_heads = c.kv_heads;
  problem.value_channels = c.value_dim;
  problem.scale = c.scale_by_layer ? c.attention_scale / static_cast<float>(layer + 1) : c.attention_scale;
  problem.softcap = c.attention_softcap;
  return problem;
}

}  // namespace

Problem attention_problem(const Model& model, std::int64_t layer) {
  const ModelConfig& c = model.config();
  Problem problem = plain_problem(c, layer);
  problem.mask.causal = c.causal;
  if (c.window[layer] > 0) {
    problem.mask.window_left = c.window[layer];
    if (!c.causal) problem.mask.window_right = c.window[layer] - 1;
  }
  problem.sinks = model.layers()[layer].sinks;
  return problem;
}

Problem cross_attention_problem(const Model& model, std::int64_t layer) { return plain_problem(model.config(), layer); }

}  // namespace regard
