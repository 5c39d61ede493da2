#include "weights/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tensor/error.h"

namespace regard {

namespace {

constexpr std::int64_t kLargest = 1 << 30;  // of any extent: products of two cannot wrap

constexpr std::int64_t kQuantization = 2;  // of the block types' layout (ggml.h, GGML_QNT_VERSION)

// Everything that a `llama` file may say and that is either used below or changes no number: anything else is refused.
constexpr std::array<std::string_view, 26> kUnderstood = {
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.scale",
    "attention.sliding_window",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_used_count",
    "feed_forward_length",
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

class Keys {
 public:
  explicit Keys(const GgufFile& gguf) : gguf_(gguf), prefix_(std::string(gguf.string("general.architecture")) + ".") {}

  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  [[noreturn]] void bad(std::string_view key, std::string_view what) const {
    throw Error(ErrorCode::bad_input, fmt::format("{}: {} {}", gguf_.file, in_quotes(name(key)), what));
  }
  [[noreturn]] void refuse(std::string_view key, std::string_view what) const {
    throw Error(ErrorCode::unsupported, fmt::format("{}: {} {}", gguf_.file, in_quotes(name(key)), what));
  }

  // A number of things, at least 1. Per-layer lists count if all layers say the same.
  std::optional<std::int64_t> find_extent(std::string_view key, std::int64_t layers = 0) const {
    const std::string full = name(key);
    const auto found = gguf_.metadata.find(full);
    if (found == gguf_.metadata.end()) return std::nullopt;
    std::int64_t value = 0;
    if (layers > 0 && found->second.type == GgufType::array) {
      const std::vector<std::int64_t> list = *gguf_.find_integers(full);
      if (static_cast<std::int64_t>(list.size()) != layers)
        bad(key, fmt::format("has {} elements for {} layers", list.size(), layers));
      value = list[0];
      if (std::count(list.begin(), list.end(), value) != layers)
        refuse(key, "differs between layers, which is not supported");
    } else {
      value = *gguf_.find_integer(full);
    }
    if (value < 1 || value > kLargest) bad(key, fmt::format("is {}; it should be 1 or more, and sane", value));
    return value;
  }
  std::int64_t extent(std::string_view key, std::int64_t layers = 0) const {
    const std::optional<std::int64_t> value = find_extent(key, layers);
    if (!value) bad(key, "is missing");
    return *value;
  }
  std::optional<double> find_positive(std::string_view key) const {
    const std::optional<double> value = gguf_.find_number(name(key));
    if (value && !(std::isfinite(*value) && *value > 0))
      bad(key, fmt::format("is {}; it should be positive and finite", *value));
    return value;
  }
  void refuse_unknown() const {
    for (auto at = gguf_.metadata.lower_bound(prefix_); at != gguf_.metadata.end() && at->first.starts_with(prefix_);
         ++at) {
      const std::string_view key = std::string_view(at->first).substr(prefix_.size());
      if (std::find(kUnderstood.begin(), kUnderstood.end(), key) == kUnderstood.end())
        refuse(key, "is not understood; as it may change the result, it is not ignored");
    }
  }

 private:
  const GgufFile& gguf_;
  std::string prefix_;
};

void read_rope_scaling(const GgufFile& gguf, const Keys& keys, RotaryConfig& rotary) {
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

// Mixtures of experts, masks and scales that some descendants of Llama have, under the same architecture name.
void refuse_other_mathematics(const GgufFile& gguf, const Keys& keys) {
  keys.refuse_unknown();
  for (const std::string_view key : {"expert_count", "expert_used_count"})
    if (gguf.find_integer(keys.name(key)).value_or(0) != 0)
      keys.refuse(key, "says mixture of experts, which is not supported");
  if (!gguf.find_bool(keys.name("attention.causal")).value_or(true))
    keys.refuse("attention.causal", "is false; only causal attention is supported here");
}

}  // namespace

ModelConfig config_from_gguf(const GgufFile& gguf, std::int64_t tensors) {
  ModelConfig c;
  c.family = gguf.string("general.architecture");
  if (c.family != "llama")
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: the architecture {} is not supported yet", gguf.file, in_quotes(c.family)),
                "its tokens can be looked at: regard tokens; models of the architecture 'llama' can be run");
  const std::string_view what = gguf.find_string("general.type").value_or("model");
  if (what != "model")
    throw Error(ErrorCode::unsupported, fmt::format("{}: holds {}, not a model", gguf.file, in_quotes(what)));
  const std::int64_t quantization = gguf.find_integer("general.quantization_version").value_or(kQuantization);
  if (quantization != kQuantization)
    throw Error(ErrorCode::unsupported, fmt::format("{}: 'general.quantization_version' is {}; only {} is supported",
                                                    gguf.file, quantization, kQuantization));
  const Keys keys(gguf);
  refuse_other_mathematics(gguf, keys);
  c.name = gguf.find_string("general.name").value_or("");

  c.layers = keys.extent("block_count");
  if (c.layers > tensors)
    keys.bad("block_count", fmt::format("is {}, but there are only {} tensors", c.layers, tensors));
  c.width = keys.extent("embedding_length");
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

  const std::string epsilon = keys.name("attention.layer_norm_rms_epsilon");
  c.norm_epsilon = static_cast<float>(gguf.number(epsilon));
  if (!std::isfinite(c.norm_epsilon) || c.norm_epsilon < 0)
    keys.bad("attention.layer_norm_rms_epsilon",
             fmt::format("is {}; it should be finite and not negative", c.norm_epsilon));
  const double scale =
      gguf.find_number(keys.name("attention.scale")).value_or(1 / std::sqrt(static_cast<double>(c.head_dim)));
  if (!std::isfinite(scale)) keys.bad("attention.scale", fmt::format("is {}; it should be finite", scale));
  c.attention_scale = static_cast<float>(scale);
  const std::int64_t window = gguf.find_integer(keys.name("attention.sliding_window")).value_or(0);
  if (window < 0) keys.bad("attention.sliding_window", fmt::format("is {}; it should not be negative", window));
  c.window.assign(static_cast<std::size_t>(c.layers), window);

  RotaryConfig& rotary = c.rotary_global;
  rotary.pairs = RotaryPairs::interleaved;  // q and k rows are stored permuted for that
  rotary.dim = keys.find_extent("rope.dimension_count").value_or(c.head_dim);
  if (rotary.dim > c.head_dim || rotary.dim % 2 != 0)
    keys.bad("rope.dimension_count",
             fmt::format("is {}; it should be even and at most the {} channels of a head", rotary.dim, c.head_dim));
  rotary.base = keys.find_positive("rope.freq_base").value_or(10000);
  rotary.context = c.context;
  read_rope_scaling(gguf, keys, rotary);
  c.rotary_local = rotary;

  const GgufArray* tokens = gguf.find_array("tokenizer.ggml.tokens");
  const std::optional<std::int64_t> vocabulary = keys.find_extent("vocab_size");
  if (tokens != nullptr && vocabulary && tokens->count != *vocabulary)
    keys.bad("vocab_size", fmt::format("is {}, but 'tokenizer.ggml.tokens' has {} tokens", *vocabulary, tokens->count));
  c.vocabulary = tokens != nullptr ? tokens->count : keys.extent("vocab_size");
  return c;
}

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& c) {
  std::vector<ExpectedTensor> all;
  const auto vector = [&](std::string name, std::int64_t n, bool optional = false) {
    all.push_back({std::move(name), 1, n, true, optional});
  };
  const auto linear = [&](const std::string& name, std::int64_t rows, std::int64_t cols, bool optional = false) {
    all.push_back({name + ".weight", rows, cols, false, optional});
    vector(name + ".bias", rows, true);
  };
  all.push_back({"token_embd.weight", c.vocabulary, c.width, false, false});
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string block = fmt::format("blk.{}.", layer);
    vector(block + "attn_norm.weight", c.width);
    linear(block + "attn_q", c.heads * c.head_dim, c.width);
    linear(block + "attn_k", c.kv_heads * c.head_dim, c.width);
    linear(block + "attn_v", c.kv_heads * c.value_dim, c.width);
    linear(block + "attn_output", c.width, c.heads * c.value_dim);
    vector(block + "ffn_norm.weight", c.width);
    linear(block + "ffn_gate", c.hidden, c.width);
    linear(block + "ffn_up", c.hidden, c.width);
    linear(block + "ffn_down", c.width, c.hidden);
  }
  vector("output_norm.weight", c.width);
  linear("output", c.vocabulary, c.width, true);
  vector("rope_freqs.weight", c.rotary_global.dim / 2, true);
  return all;
}

}  // namespace regard
