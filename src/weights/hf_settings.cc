#include "weights/hf_settings.h"

#include <fmt/core.h>

#include <cmath>

#include "tensor/error.h"

namespace regard {
namespace {

// Far more than any model has; the tables per channel are made before a tensor has shown how many there are.
constexpr std::int64_t kMostChannels = 1 << 16;

std::vector<double> numbers(const JsonPlace& list) {
  std::vector<double> values;
  for (const JsonPlace& value : list.elements()) values.push_back(value.number());
  return values;
}

// A scaling's own keys: anything else in there is refused.
void read_scaling(const JsonPlace& p, RotaryConfig& rotary) {
  const std::string type = p.string_or("rope_type", p.string_or("type", "default"));
  const std::initializer_list<std::string_view> known = {"rope_type",       "type",
                                                         "rope_theta",      "partial_rotary_factor",
                                                         "factor",          "original_max_position_embeddings",
                                                         "low_freq_factor", "high_freq_factor",
                                                         "beta_fast",       "beta_slow",
                                                         "truncate",        "attention_factor",
                                                         "mscale",          "mscale_all_dim",
                                                         "short_factor",    "long_factor",
                                                         "finetuned"};
  p.expect_only(known);
  rotary.base = p.number_or("rope_theta", rotary.base);
  if (type == "default") return;
  const bool needs_factor = type != "longrope" && type != "su";
  if (needs_factor) rotary.factor = p.at("factor").number();
  rotary.original_context = p.integer_or("original_max_position_embeddings",
                                         rotary.original_context > 0 ? rotary.original_context : rotary.context);
  if (type == "linear") {
    rotary.scaling = RotaryScaling::linear;
  } else if (type == "dynamic") {
    rotary.scaling = RotaryScaling::dynamic_ntk;
  } else if (type == "llama3") {
    rotary.scaling = RotaryScaling::llama3;
    rotary.low_frequency_factor = p.number_or("low_freq_factor", rotary.low_frequency_factor);
    rotary.high_frequency_factor = p.number_or("high_freq_factor", rotary.high_frequency_factor);
  } else if (type == "yarn") {
    rotary.scaling = RotaryScaling::yarn;
    rotary.beta_fast = p.number_or("beta_fast", rotary.beta_fast);
    rotary.beta_slow = p.number_or("beta_slow", rotary.beta_slow);
    rotary.truncate = p.boolean_or("truncate", true);
    rotary.attention_factor = p.number_or("attention_factor", 0);
    rotary.mscale = p.number_or("mscale", 0);
    rotary.mscale_all_dim = p.number_or("mscale_all_dim", 0);
  } else if (type == "longrope" || type == "su") {
    rotary.scaling = RotaryScaling::longrope;
    rotary.factor = p.number_or("factor", 1);
    rotary.attention_factor = p.number_or("attention_factor", 0);
    rotary.short_factors = numbers(p.at("short_factor"));
    rotary.long_factors = numbers(p.at("long_factor"));
  } else {
    throw p.error(fmt::format("has the rope_type '{}', which is not supported", type), ErrorCode::unsupported,
                  "supported are: default linear dynamic llama3 yarn longrope");
  }
}

}  // namespace

ModelConfig hf_sizes(HfKeys& keys) {
  ModelConfig c;
  c.layers = keys.layers({"num_hidden_layers", "n_layer", "num_layers", "n_layers"});
  c.width = c.embedding_width = keys.extent({"hidden_size", "n_embd", "dim"});
  c.vocabulary = keys.extent({"vocab_size"});
  c.context = keys.find_extent({"max_position_embeddings", "n_positions", "max_seq_len"}).value_or(0);
  const std::int64_t heads = keys.extent({"num_attention_heads", "n_head", "num_heads", "n_heads"});
  hf_heads(keys, c, heads, keys.find_extent({"num_key_value_heads", "n_kv_heads"}).value_or(heads));
  return c;
}

void hf_heads(HfKeys& keys, ModelConfig& c, std::int64_t heads, std::int64_t kv_heads, std::string_view head_dim_key) {
  c.heads = heads;
  c.kv_heads = kv_heads;
  if (heads % kv_heads != 0)
    keys.bad("num_key_value_heads", fmt::format("is {}, which does not divide the {} heads", kv_heads, heads));
  const auto head_dim = keys.find_extent({head_dim_key});
  if (!head_dim && c.width % heads != 0)
    keys.bad("num_attention_heads", fmt::format("is {}, which does not divide the width {}", heads, c.width));
  c.head_dim = c.value_dim = head_dim.value_or(c.width / heads);
  if (c.head_dim > kMostChannels)
    keys.bad(head_dim_key,
             fmt::format("or width / heads is {}; heads have at most {} channels", c.head_dim, kMostChannels));
  c.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
  c.window.assign(static_cast<std::size_t>(c.layers), 0);
}

Activation hf_activation(HfKeys& keys, std::string_view key, std::string_view otherwise) {
  const std::string name = keys.string_or(key, otherwise);
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu" || name == "gelu_python") return Activation::gelu_erf;
  for (const std::string_view tanh :
       {"gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"})
    if (name == tanh) return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  keys.refuse(key, fmt::format("is '{}', which is not supported", name));
}

void hf_rope(HfKeys& keys, ModelConfig& c, const HfRope& rope) {
  RotaryConfig& global = c.rotary_global;
  global.base = keys.positive_or(rope.base_key, rope.base);
  global.context = c.context;
  global.original_context = keys.find_extent({"original_max_position_embeddings"}).value_or(0);
  double partial = keys.positive_or(rope.partial_key, rope.partial);
  std::optional<JsonPlace> local;
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    const std::optional<JsonPlace> p = keys.find(key);
    if (!p || p->size() == 0) continue;
    const std::optional<JsonPlace> full = p->find("full_attention");
    local = p->find("sliding_attention");
    const JsonPlace& of_all = full ? *full : *p;
    if (full || local) p->expect_only({"full_attention", "sliding_attention"});
    partial = of_all.number_or("partial_rotary_factor", partial);
    read_scaling(of_all, global);
    break;
  }
  if (!(partial > 0 && partial <= 1)) keys.bad(rope.partial_key, fmt::format("is {}; it is a part of 1", partial));
  global.dim = static_cast<std::int64_t>(static_cast<double>(c.head_dim) * partial);
  if (global.dim < 2 || global.dim % 2 != 0)
    keys.bad(rope.partial_key,
             fmt::format("rotates {} of {} channels; it should be an even number of them", global.dim, c.head_dim));
  c.rotary_local = global;
  if (rope.local_base > 0) {
    c.rotary_local = RotaryConfig();
    c.rotary_local.dim = global.dim;
    c.rotary_local.context = c.context;
    c.rotary_local.base = keys.positive_or(rope.local_base_key, rope.local_base);
    if (local) read_scaling(*local, c.rotary_local);
  } else if (local) {
    c.rotary_local.scaling = RotaryScaling::none;
    read_scaling(*local, c.rotary_local);
  }
  for (const RotaryConfig* rotary : {&c.rotary_global, &c.rotary_local}) rotary_frequencies(*rotary, c.context);
}

std::vector<bool> hf_layer_types(HfKeys& keys, const ModelConfig& c) {
  std::vector<bool> windowed;
  const std::optional<JsonPlace> types = keys.find("layer_types");
  if (!types) return windowed;
  for (const JsonPlace& type : types->elements()) {
    const std::string_view name = type.string();
    if (name != "full_attention" && name != "sliding_attention")
      throw type.error(fmt::format("is '{}', which is not supported", name), ErrorCode::unsupported);
    windowed.push_back(name == "sliding_attention");
  }
  if (static_cast<std::int64_t>(windowed.size()) != c.layers)
    keys.bad("layer_types", fmt::format("has {} entries for {} layers", windowed.size(), c.layers));
  return windowed;
}

}  // namespace regard
