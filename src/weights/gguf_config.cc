#include "weights/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tensor/error.h"
#include "weights/gguf_family.h"

namespace regard {

namespace {

constexpr std::int64_t kQuantization = 2;  // of the block types' layout (ggml.h, GGML_QNT_VERSION)

// What a file of any architecture may say and that is either used below or changes no number.
constexpr std::array<std::string_view, 26> kUnderstood = {
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.scale",
    "attention.sliding_window",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_used_count",
    "feed_forward_length",
    "pooling_type",  // pooling is the reader's
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "tensor_data_layout",  // how it was converted from; q and k are stored permuted either way
    "vocab_size",
};

void read_rope_scaling(const GgufFile& gguf, const GgufKeys& keys, RotaryConfig& rotary) {
  const std::string_view type = gguf.find_string(keys.name("rope.scaling.type")).value_or("");
  rotary.factor = keys.find_positive("rope.scaling.factor").value_or(1);
  if (type.empty()) {
    // Before there were types, `rope.scale_linear`; a factor alone means the same.
    if (const auto old = keys.find_positive("rope.scale_linear")) rotary.factor = *old;
    if (rotary.factor != 1) rotary.scaling = RotaryScaling::linear;
  } else if (type == "none") {
    rotary.factor = 1;
  } else if (type == "linear") {
    rotary.scaling = RotaryScaling::linear;
  } else if (type == "yarn") {
    rotary.scaling = RotaryScaling::yarn;
    rotary.original_context = keys.find_extent("rope.scaling.original_context_length").value_or(rotary.context);
    rotary.beta_fast = keys.find_positive("rope.scaling.yarn_beta_fast").value_or(rotary.beta_fast);
    rotary.beta_slow = keys.find_positive("rope.scaling.yarn_beta_slow").value_or(rotary.beta_slow);
    // In a GGUF the factor multiplies yarn's own 0.1 ln(factor) + 1 (ggml, rope_yarn).
    if (const auto attention = keys.find_positive("rope.scaling.attn_factor"))
      rotary.attention_factor = *attention * (0.1 * std::log(rotary.factor) + 1);
  } else {
    keys.refuse("rope.scaling.type", fmt::format("is {}, which is not supported", in_quotes(type)));
  }
}

// Mixtures of experts and masks that some descendants have, under the same architecture name.
void refuse_other_mathematics(const GgufKeys& keys, const GgufFamily& family) {
  for (const std::string_view key : {"expert_count", "expert_used_count"})
    if (!family.mixture && keys.file().find_integer(keys.name(key)).value_or(0) != 0)
      keys.refuse(key, "says mixture of experts, which is not supported here");
  if (keys.file().find_bool(keys.name("attention.causal")).value_or(family.causal) != family.causal)
    keys.refuse("attention.causal", fmt::format("is {}, which is not supported here", !family.causal));
}

}  // namespace

ModelConfig config_from_gguf(const GgufFile& gguf, std::int64_t tensors) {
  ModelConfig c;
  c.family = gguf.string("general.architecture");
  const GgufFamily& family = gguf_family(gguf, c.family);
  const std::string_view what = gguf.find_string("general.type").value_or("model");
  if (what != "model")
    throw Error(ErrorCode::unsupported, fmt::format("{}: holds {}, not a model", gguf.file, in_quotes(what)));
  const std::int64_t quantization = gguf.find_integer("general.quantization_version").value_or(kQuantization);
  if (quantization != kQuantization)
    throw Error(ErrorCode::unsupported, fmt::format("{}: 'general.quantization_version' is {}; only {} is supported",
                                                    gguf.file, quantization, kQuantization));
  const GgufKeys keys(gguf);
  keys.refuse_unknown(kUnderstood, family.keys);
  refuse_other_mathematics(keys, family);
  c.name = gguf.find_string("general.name").value_or("");

  c.layers = keys.extent("block_count");
  if (c.layers > tensors)
    keys.bad("block_count", fmt::format("is {}, but there are only {} tensors", c.layers, tensors));
  c.width = c.embedding_width = keys.extent("embedding_length");
  c.hidden = keys.extent("feed_forward_length", c.layers);
  c.context = keys.extent("context_length");
  c.heads = keys.extent("attention.head_count", c.layers);
  c.kv_heads = keys.find_extent("attention.head_count_kv", c.layers).value_or(c.heads);
  if (c.heads % c.kv_heads != 0)
    keys.bad("attention.head_count_kv", fmt::format("is {}, which does not divide the {} heads", c.kv_heads, c.heads));
  const auto channels = [&](std::string_view key) {
    if (const auto value = keys.find_extent(key)) return *value;
    if (c.width % c.heads != 0)
      keys.bad("attention.head_count", fmt::format("is {}, which does not divide the width {}", c.heads, c.width));
    return c.width / c.heads;
  };
  c.head_dim = channels("attention.key_length");
  c.value_dim = channels("attention.value_length");
  if (c.head_dim % 2 != 0)
    keys.bad("attention.key_length",
             fmt::format("or width / heads is {}; rotary positions need an even number", c.head_dim));

  c.norm = family.norm;
  const std::string_view epsilon =
      c.norm == NormKind::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  c.norm_epsilon = static_cast<float>(gguf.number(keys.name(epsilon)));
  if (!std::isfinite(c.norm_epsilon) || c.norm_epsilon < 0)
    keys.bad(epsilon, fmt::format("is {}; it should be finite and not negative", c.norm_epsilon));
  const double scale =
      gguf.find_number(keys.name("attention.scale")).value_or(1 / std::sqrt(static_cast<double>(c.head_dim)));
  if (!std::isfinite(scale)) keys.bad("attention.scale", fmt::format("is {}; it should be finite", scale));
  c.attention_scale = static_cast<float>(scale);
  const std::int64_t window = gguf.find_integer(keys.name("attention.sliding_window")).value_or(0);
  if (window < 0) keys.bad("attention.sliding_window", fmt::format("is {}; it should not be negative", window));
  c.window.assign(static_cast<std::size_t>(c.layers), window);

  RotaryConfig& rotary = c.rotary_global;
  rotary.dim = keys.find_extent("rope.dimension_count").value_or(c.head_dim);
  if (rotary.dim > c.head_dim || rotary.dim % 2 != 0)
    keys.bad("rope.dimension_count",
             fmt::format("is {}; it should be even and at most the {} channels of a head", rotary.dim, c.head_dim));
  rotary.base = keys.find_positive("rope.freq_base").value_or(10000);
  rotary.context = c.context;
  read_rope_scaling(gguf, keys, rotary);
  c.rotary_local = rotary;
  family.fill(keys, c);

  const GgufArray* tokens = gguf.find_array("tokenizer.ggml.tokens");
  const std::optional<std::int64_t> vocabulary = keys.find_extent("vocab_size");
  if (tokens != nullptr && vocabulary && tokens->count != *vocabulary)
    keys.bad("vocab_size", fmt::format("is {}, but 'tokenizer.ggml.tokens' has {} tokens", *vocabulary, tokens->count));
  c.vocabulary = tokens != nullptr ? tokens->count : keys.extent("vocab_size");
  return c;
}

}  // namespace regard
