#include "weights/gguf_family.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "tensor/error.h"

namespace regard {
namespace {

// Layer l reads its whole text where (l + 1) % every == 0, the others a window.
void alternate_windows(ModelConfig& c, std::int64_t every) {
  for (std::int64_t l = 0; l < c.layers; ++l)
    if ((l + 1) % every == 0) c.window[static_cast<std::size_t>(l)] = 0;
}

// All layers: whether one is dense shows in its tensors (load_gguf_checkpoint).
void mixture(const GgufKeys& keys, ModelConfig& c) {
  c.mixture.experts = keys.extent("expert_count");
  c.mixture.used = keys.extent("expert_used_count");
  if (c.mixture.used > c.mixture.experts)
    keys.bad("expert_used_count", fmt::format("is {} of {} experts", c.mixture.used, c.mixture.experts));
  c.mixture.hidden = keys.extent("expert_feed_forward_length");
  c.mixture.layers.assign(static_cast<std::size_t>(c.layers), true);
}

void no_change(const GgufKeys&, ModelConfig&) {}

// q and k rows are stored permuted for it (conversion/llama.py, permute). Mistral says llama too, with a window.
void llama(const GgufKeys&, ModelConfig& c) { c.rotary_global.pairs = c.rotary_local.pairs = RotaryPairs::interleaved; }

void qwen3(const GgufKeys&, ModelConfig& c) { c.query_key_norm = true; }

// Files do not carry norm_topk_prob: it is true of all that are published.
void qwen3moe(const GgufKeys& keys, ModelConfig& c) {
  c.query_key_norm = true;
  mixture(keys, c);
}

// Norm weights are stored with their 1 added (conversion/gemma.py). Embeddings are scaled in f32, as the rows they
// scale were widened: a quantised file does not say what they were.
void gemma(ModelConfig& c, std::int64_t layers_of_27b) {
  c.norm_place = NormPlace::around;
  c.activation = Activation::gelu_tanh;
  c.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(c.width)));
  // Files do not carry query_pre_attn_scalar: it is D, but width / H in the 27B models (llama.cpp, llama-model.cpp).
  if (c.layers == layers_of_27b)
    c.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.width / c.heads)));
}

void gemma2(const GgufKeys& keys, ModelConfig& c) {
  gemma(c, 46);
  c.attention_softcap = static_cast<float>(keys.find_positive("attn_logit_softcapping").value_or(50));
  c.logit_softcap = static_cast<float>(keys.find_positive("final_logit_softcapping").value_or(30));
  // The first files did not say it.
  if (!keys.file().find_integer(keys.name("attention.sliding_window"))) c.window.assign(c.window.size(), 4096);
  alternate_windows(c, 2);
}

void gemma3(const GgufKeys& keys, ModelConfig& c) {
  gemma(c, 62);
  c.query_key_norm = true;
  if (const auto cap = keys.find_positive("final_logit_softcapping")) c.logit_softcap = static_cast<float>(*cap);
  alternate_windows(c, keys.find_extent("attention.sliding_window_pattern").value_or(6));
  const RotaryConfig global = c.rotary_global;
  c.rotary_local = RotaryConfig();  // its own base, never stretched
  c.rotary_local.dim = global.dim;
  c.rotary_local.context = global.context;
  c.rotary_local.base = keys.find_positive("rope.freq_base_swa").value_or(10000);
}

// The factors of longrope are tensors, and what they are for is not said.
void phi3(const GgufKeys& keys, ModelConfig& c) {
  RotaryConfig& rotary = c.rotary_global;
  rotary.original_context = keys.find_extent("rope.scaling.original_context_length").value_or(c.context);
  rotary.attention_factor = keys.find_positive("rope.scaling.attn_factor").value_or(0);
  // The file has f32 of the formula: take the formula.
  const double stretch = static_cast<double>(c.context) / static_cast<double>(rotary.original_context);
  const double formula =
      stretch <= 1 ? 1 : std::sqrt(1 + std::log(stretch) / std::log(static_cast<double>(rotary.original_context)));
  if (rotary.attention_factor == static_cast<double>(static_cast<float>(formula))) rotary.attention_factor = 0;
  c.rotary_local = rotary;
}

void gpt_like(ModelConfig& c) {
  c.gated = false;
  c.norm_bias = c.query_bias = c.output_bias = c.mlp_bias = Bias::yes;
}

void gpt2(const GgufKeys&, ModelConfig& c) {
  gpt_like(c);
  c.rotary = false;
  c.position_table = true;
  c.activation = Activation::gelu_tanh;
}

void gptneox(const GgufKeys& keys, ModelConfig& c) {
  gpt_like(c);
  c.activation = Activation::gelu_erf;
  c.parallel_branches = keys.file().find_bool(keys.name("use_parallel_residual")).value_or(true);
}

void gpt_oss(const GgufKeys& keys, ModelConfig& c) {
  c.activation = Activation::clamped_swiglu;
  c.query_bias = c.output_bias = c.mlp_bias = Bias::yes;
  c.sinks = true;
  mixture(keys, c);
  alternate_windows(c, 2);
  // Its config.json says truncate: false, for which GGUF has no key.
  c.rotary_global.truncate = c.rotary_local.truncate = false;
}

// Without the head for masked tokens, which files do not have. Of its token types, texts are all of the first.
void bert(const GgufKeys& keys, ModelConfig& c) {
  gpt_like(c);
  c.causal = c.rotary = false;
  c.norm_place = NormPlace::after;
  c.final_norm = c.head = false;
  c.position_table = true;
  c.embedding_norm = true;
  c.token_types = keys.file().find_integer("tokenizer.ggml.token_type_count").value_or(2);
  if (c.token_types < 1 || c.token_types > 1 << 16)
    throw Error(ErrorCode::bad_input, fmt::format("{}: 'tokenizer.ggml.token_type_count' is {}; it should be 1 or more",
                                                  keys.file().file, c.token_types));
  c.activation = Activation::gelu_erf;
}

constexpr std::string_view kRms[] = {"attention.layer_norm_rms_epsilon"};
constexpr std::string_view kGemma2[] = {"attention.layer_norm_rms_epsilon", "attn_logit_softcapping",
                                        "final_logit_softcapping"};
constexpr std::string_view kGemma3[] = {"attention.layer_norm_rms_epsilon", "attention.sliding_window_pattern",
                                        "final_logit_softcapping", "rope.freq_base_swa"};
constexpr std::string_view kExperts[] = {"attention.layer_norm_rms_epsilon", "expert_feed_forward_length"};
constexpr std::string_view kLayerNorm[] = {"attention.layer_norm_epsilon"};
constexpr std::string_view kNeoX[] = {"attention.layer_norm_epsilon", "use_parallel_residual"};

// Rotary pairs are (i, i + D/2) but where said; every linear layer may have a bias but where said; a head that is not
// there is tied.
constexpr GgufFamily kGgufFamilies[] = {
    {"llama", kRms, llama},
    {"qwen2", kRms, no_change},
    {"qwen3", kRms, qwen3},
    {"qwen3moe", kExperts, qwen3moe, NormKind::rms, true},
    {"gemma2", kGemma2, gemma2},
    {"gemma3", kGemma3, gemma3},
    {"phi3", kRms, phi3},
    {"gpt2", kLayerNorm, gpt2, NormKind::layer},
    {"gptneox", kNeoX, gptneox, NormKind::layer},
    {"gpt-oss", kExperts, gpt_oss, NormKind::rms, true},
    {"bert", kLayerNorm, bert, NormKind::layer, false, false},
};

}  // namespace

const GgufFamily& gguf_family(const GgufFile& gguf, std::string_view architecture) {
  std::string known;
  for (const GgufFamily& family : kGgufFamilies) {
    if (family.architecture == architecture) return family;
    known += fmt::format("{}{}", known.empty() ? "" : " ", family.architecture);
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: the architecture {} is not supported", gguf.file, in_quotes(architecture)),
              fmt::format("its tokens can be looked at: regard tokens; GGUF architectures that can be run: {}", known));
}

TensorPart gguf_part(const ModelConfig& c, const StoredTensors& tensors, const std::string& canonical) {
  const CanonicalName name(canonical);
  const std::string block = "blk." + name.layer + ".";
  TensorPart part;
  part.tensor = canonical;
  if (!name.expert.empty()) {
    part.tensor = block + name.piece + "_exps" + name.suffix;
    part.expert = std::stoll(name.expert);
    return part;
  }
  const auto has = [&](std::string_view piece) { return tensors.contains(block + std::string(piece) + ".weight"); };
  const auto in = [&](std::string_view piece) { part.tensor = block + std::string(piece) + name.suffix; };
  constexpr std::pair<std::string_view, Projection> kProjections[] = {
      {"attn_q", Projection::q}, {"attn_k", Projection::k}, {"attn_v", Projection::v}};
  for (const auto& [piece, projection] : kProjections) {
    if (name.piece != piece || has(piece) || !has("attn_qkv")) continue;
    in("attn_qkv");
    take_projection(part, projection, c);
  }
  if (c.gated && (name.piece == "ffn_gate" || name.piece == "ffn_up") && !has("ffn_gate")) {
    const auto up = tensors.find(block + "ffn_up.weight");  // of both: one below the other
    if (up == tensors.end() || up->second.shape.size() != 2 || up->second.shape.front() != 2 * c.hidden) return part;
    in("ffn_up");
    part.take_rows(name.piece == "ffn_gate" ? 0 : c.hidden, c.hidden);
  }
  // gpt-oss calls it after what stands before it.
  if (name.piece == "ffn_norm" && c.norm_place == NormPlace::before && !has("ffn_norm") && has("post_attention_norm"))
    in("post_attention_norm");
  return part;
}

}  // namespace regard
