// Llama and what descends from it: RMSNorm, rotary positions, gated feed-forwards.

#include <fmt/core.h>

#include <cmath>

#include "weights/hf_family.h"
#include "weights/hf_settings.h"

namespace regard {
namespace {

ModelConfig llama_like(HfKeys& keys) {
  ModelConfig c = hf_sizes(keys);
  c.hidden = keys.extent({"intermediate_size"});
  c.norm_epsilon = keys.epsilon_or("rms_norm_eps", 1e-6);
  c.tied_head = keys.flag_or("tie_word_embeddings", false);
  c.norm_bias = c.head_bias = Bias::no;
  c.query_bias = c.output_bias = c.mlp_bias = Bias::no;
  return c;
}

ModelConfig llama(HfKeys& keys) {
  ModelConfig c = llama_like(keys);
  c.activation = hf_activation(keys, "hidden_act", "silu");
  c.query_bias = c.output_bias = has_bias(keys.flag_or("attention_bias", false));
  c.mlp_bias = has_bias(keys.flag_or("mlp_bias", false));
  if (keys.string_or("activation", "swiglu") != "swiglu") keys.refuse("activation", "is not 'swiglu'");  // Falcon 3
  hf_rope(keys, c);
  return c;
}

ModelConfig mistral(HfKeys& keys) {
  ModelConfig c = llama_like(keys);
  c.activation = hf_activation(keys, "hidden_act", "silu");
  hf_rope(keys, c);
  // A file that is silent means 4096; one that says null, none.
  const std::int64_t window =
      keys.find_extent({"sliding_window"}).value_or(keys.says_null("sliding_window") ? 0 : 4096);
  hf_windows(keys, c, window, [](std::int64_t) { return true; });
  return c;
}

void qwen_windows(HfKeys& keys, ModelConfig& c) {
  const bool used = keys.flag_or("use_sliding_window", false);
  const std::int64_t window =
      keys.find_extent({"sliding_window"}).value_or(keys.says_null("sliding_window") ? 0 : 4096);
  const std::int64_t full = keys.find_integer("max_window_layers").value_or(28);  // the first layers
  hf_windows(keys, c, used ? window : 0, [&](std::int64_t l) { return l >= full; });
}

ModelConfig qwen2(HfKeys& keys) {
  ModelConfig c = llama_like(keys);
  c.activation = hf_activation(keys, "hidden_act", "silu");
  c.query_bias = Bias::yes;
  hf_rope(keys, c);
  qwen_windows(keys, c);
  return c;
}

ModelConfig qwen3(HfKeys& keys) {
  ModelConfig c = llama_like(keys);
  c.activation = hf_activation(keys, "hidden_act", "silu");
  c.query_bias = c.output_bias = has_bias(keys.flag_or("attention_bias", false));
  c.query_key_norm = true;
  keys.expect("use_qk_norm", true);
  hf_rope(keys, c);
  qwen_windows(keys, c);
  return c;
}

// Qwen3MoeDecoderLayer: layer l is a mixture where (l + 1) % decoder_sparse_step == 0, but for mlp_only_layers.
ModelConfig qwen3_moe(HfKeys& keys) {
  ModelConfig c = qwen3(keys);
  keys.expect("shared_expert_intermediate_size", 0.0);
  c.mixture.experts = keys.extent({"num_experts", "num_local_experts"});
  c.mixture.used = keys.extent({"num_experts_per_tok"});
  if (c.mixture.used > c.mixture.experts) keys.bad("num_experts_per_tok", "is larger than the number of experts");
  c.mixture.hidden = keys.extent({"moe_intermediate_size"});
  c.mixture.renormalise = keys.flag_or("norm_topk_prob", false);
  const std::int64_t step = keys.find_extent({"decoder_sparse_step"}).value_or(1);
  for (std::int64_t l = 0; l < c.layers; ++l) c.mixture.layers.push_back((l + 1) % step == 0);
  if (const auto dense = keys.find("mlp_only_layers"))
    for (const JsonPlace& layer : dense->elements())
      if (layer.integer() >= 0 && layer.integer() < c.layers)
        c.mixture.layers[static_cast<std::size_t>(layer.integer())] = false;
  return c;
}

ModelConfig gemma(HfKeys& keys) {
  ModelConfig c = llama_like(keys);
  c.tied_head = keys.flag_or("tie_word_embeddings", true);
  c.activation = hf_activation(keys, "hidden_activation", keys.string_or("hidden_act", "gelu_pytorch_tanh"));
  c.query_bias = c.output_bias = has_bias(keys.flag_or("attention_bias", false));
  c.norm_place = NormPlace::around;
  c.norm_weight_plus_one = true;
  c.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(c.width)));
  c.attention_scale = static_cast<float>(1 / std::sqrt(keys.positive_or("query_pre_attn_scalar", 256)));
  keys.expect("use_bidirectional_attention", false);
  return c;
}

ModelConfig gemma2(HfKeys& keys) {
  ModelConfig c = gemma(keys);
  c.attention_softcap = keys.softcap("attn_logit_softcapping");
  c.logit_softcap = keys.softcap("final_logit_softcapping");
  hf_rope(keys, c);
  hf_windows(keys, c, keys.find_extent({"sliding_window"}).value_or(4096), [](std::int64_t l) { return l % 2 == 0; });
  return c;
}

ModelConfig gemma3(HfKeys& keys) {
  ModelConfig c = gemma(keys);
  c.query_key_norm = true;
  c.attention_softcap = keys.softcap("attn_logit_softcapping");
  c.logit_softcap = keys.softcap("final_logit_softcapping");
  HfRope rope;
  rope.base = 1e6;
  rope.local_base = 1e4;
  rope.local_base_key = "rope_local_base_freq";
  hf_rope(keys, c, rope);
  const std::int64_t every =
      keys.find_extent({"sliding_window_pattern"}).value_or(keys.find_extent({"_sliding_window_pattern"}).value_or(6));
  hf_windows(keys, c, keys.find_extent({"sliding_window"}).value_or(4096),
             [&](std::int64_t l) { return (l + 1) % every != 0; });
  return c;
}

ModelConfig phi3(HfKeys& keys) {
  ModelConfig c = llama_like(keys);
  c.activation = hf_activation(keys, "hidden_act", "silu");
  keys.expect("attention_bias", false);
  for (const char* key : {"full_attn_mod", "interpolate_factor"}) keys.expect(key, 1.0);  // Phi-4-mini
  hf_rope(keys, c);
  hf_windows(keys, c, keys.find_extent({"sliding_window"}).value_or(0), [](std::int64_t) { return true; });
  return c;
}

ModelConfig gpt_oss(HfKeys& keys) {
  ModelConfig c = llama_like(keys);
  keys.string_or("hidden_act", "silu");  // named so, but computed as clamped_swiglu
  c.activation = Activation::clamped_swiglu;
  keys.expect("swiglu_alpha", 1.702);
  keys.expect("swiglu_limit", 7.0);
  c.query_bias = c.output_bias = has_bias(keys.flag_or("attention_bias", true));
  c.mlp_bias = Bias::yes;
  c.sinks = true;
  c.mixture.experts = keys.extent({"num_local_experts", "num_experts"});
  c.mixture.used = keys.extent({"num_experts_per_tok", "experts_per_token"});
  if (c.mixture.used > c.mixture.experts) keys.bad("num_experts_per_tok", "is larger than the number of experts");
  c.mixture.hidden = c.hidden;
  c.mixture.layers.assign(static_cast<std::size_t>(c.layers), true);
  HfRope rope;
  rope.base = 150000;
  hf_rope(keys, c, rope);
  hf_windows(keys, c, keys.find_extent({"sliding_window"}).value_or(128), [](std::int64_t l) { return l % 2 == 0; });
  return c;
}

// The mixtures of minimind 1 and 2 have experts that all rows share, and are not supported; their keys say nothing
// then.
void no_shared_experts(HfKeys& keys) {
  keys.expect("use_moe", false);
  for (const char* key : {"aux_loss_alpha", "n_routed_experts", "n_shared_experts", "norm_topk_prob",
                          "num_experts_per_tok", "scoring_func", "seq_aux"})
    keys.find(key);
}

// jingyaogong/minimind, model/model_minimind.py: 2 is a Llama; 3 (which says its head_dim) a Qwen3.
ModelConfig minimind(HfKeys& keys) {
  const bool third = keys.find("head_dim").has_value();
  ModelConfig c = llama_like(keys);
  c.activation = hf_activation(keys, "hidden_act", "silu");
  c.query_key_norm = third;
  c.tied_head = keys.flag_or("tie_word_embeddings", true);
  keys.expect("inference_rope_scaling", false);
  HfRope rope;
  rope.base = 1e6;
  hf_rope(keys, c, rope);
  if (!third) {
    no_shared_experts(keys);
    return c;
  }
  const std::int64_t experts = keys.find_extent({"num_experts"}).value_or(4);
  const std::int64_t used = keys.find_extent({"num_experts_per_tok"}).value_or(1);
  const std::int64_t hidden = keys.find_extent({"moe_intermediate_size"}).value_or(c.hidden);
  const bool renormalise = keys.flag_or("norm_topk_prob", true);
  if (keys.flag_or("use_moe", false))
    c.mixture = {experts, used, hidden, renormalise, std::vector<bool>(static_cast<std::size_t>(c.layers), true)};
  return c;
}

// minimind 1 (its model/model.py and LMConfig.py): Meta's names and rotary pairs, always tied.
ModelConfig minimind_1(HfKeys& keys) {
  ModelConfig c = hf_sizes(keys);
  c.norm_bias = c.head_bias = c.query_bias = c.output_bias = c.mlp_bias = Bias::no;
  const std::int64_t multiple = keys.find_extent({"multiple_of"}).value_or(64);
  const std::int64_t plain = 8 * c.width / 3;
  c.hidden = keys.find_extent({"hidden_dim"}).value_or((plain + multiple - 1) / multiple * multiple);
  c.norm_epsilon = keys.epsilon_or("norm_eps", 1e-5);
  c.tied_head = true;
  HfRope rope;
  rope.base = 10000;
  hf_rope(keys, c, rope);
  c.rotary_global.pairs = c.rotary_local.pairs = RotaryPairs::interleaved;
  no_shared_experts(keys);
  return c;
}

constexpr HfName kLlama[] = {
    {"token_embd", "embed_tokens"},
    {"output_norm", "norm"},
    {"output", "^lm_head"},
    {"attn_norm", "layers.{l}.input_layernorm"},
    {"attn_q", "layers.{l}.self_attn.q_proj"},
    {"attn_k", "layers.{l}.self_attn.k_proj"},
    {"attn_v", "layers.{l}.self_attn.v_proj"},
    {"attn_output", "layers.{l}.self_attn.o_proj"},
    {"attn_q_norm", "layers.{l}.self_attn.q_norm"},
    {"attn_k_norm", "layers.{l}.self_attn.k_norm"},
    {"ffn_norm", "layers.{l}.post_attention_layernorm"},
    {"ffn_gate", "layers.{l}.mlp.gate_proj"},
    {"ffn_up", "layers.{l}.mlp.up_proj"},
    {"ffn_down", "layers.{l}.mlp.down_proj"},
    {"ffn_gate_inp", "layers.{l}.mlp.gate"},
    {"ffn_gate.*", "layers.{l}.mlp.experts.{e}.gate_proj"},
    {"ffn_up.*", "layers.{l}.mlp.experts.{e}.up_proj"},
    {"ffn_down.*", "layers.{l}.mlp.experts.{e}.down_proj"},
};

constexpr HfName kMeta[] = {
    {"token_embd", "tok_embeddings"},
    {"output_norm", "norm"},
    {"output", "output"},
    {"attn_norm", "layers.{l}.attention_norm"},
    {"attn_q", "layers.{l}.attention.wq"},
    {"attn_k", "layers.{l}.attention.wk"},
    {"attn_v", "layers.{l}.attention.wv"},
    {"attn_output", "layers.{l}.attention.wo"},
    {"ffn_norm", "layers.{l}.ffn_norm"},
    {"ffn_gate", "layers.{l}.feed_forward.w1"},
    {"ffn_down", "layers.{l}.feed_forward.w2"},
    {"ffn_up", "layers.{l}.feed_forward.w3"},
};

constexpr HfName kGemma[] = {
    {"post_attention_norm", "layers.{l}.post_attention_layernorm"},
    {"ffn_norm", "layers.{l}.pre_feedforward_layernorm"},
    {"post_ffw_norm", "layers.{l}.post_feedforward_layernorm"},
};

constexpr HfName kPhi3[] = {
    {"attn_q", "layers.{l}.self_attn.qkv_proj", HfRows::q},
    {"attn_k", "layers.{l}.self_attn.qkv_proj", HfRows::k},
    {"attn_v", "layers.{l}.self_attn.qkv_proj", HfRows::v},
    {"ffn_gate", "layers.{l}.mlp.gate_up_proj", HfRows::first_half},
    {"ffn_up", "layers.{l}.mlp.gate_up_proj", HfRows::second_half},
};

constexpr HfName kGptOss[] = {
    {"attn_sinks.weight", "layers.{l}.self_attn.sinks"},
    {"ffn_gate_inp", "layers.{l}.mlp.router"},
    {"ffn_gate.*.weight", "layers.{l}.mlp.experts.gate_up_proj", HfRows::even, true, true},
    {"ffn_gate.*.bias", "layers.{l}.mlp.experts.gate_up_proj_bias", HfRows::even, false, true},
    {"ffn_up.*.weight", "layers.{l}.mlp.experts.gate_up_proj", HfRows::odd, true, true},
    {"ffn_up.*.bias", "layers.{l}.mlp.experts.gate_up_proj_bias", HfRows::odd, false, true},
    {"ffn_down.*.weight", "layers.{l}.mlp.experts.down_proj", HfRows::all, true, true},
    {"ffn_down.*.bias", "layers.{l}.mlp.experts.down_proj_bias", HfRows::all, false, true},
};

constexpr std::string_view kMask[] = {"attention.mask"};

constexpr HfFamily kLlamaFamilies[] = {
    {"llama", llama, "model.", kLlama},
    {"mistral", mistral, "model.", kLlama},
    {"qwen2", qwen2, "model.", kLlama},
    {"qwen3", qwen3, "model.", kLlama},
    {"qwen3_moe", qwen3_moe, "model.", kLlama},
    {.model_type = "gemma2",
     .configure = gemma2,
     .prefix = "model.",
     .names = kGemma,
     .shared = kLlama,
     .rounds_embedding_scale = true},
    {.model_type = "gemma3_text",
     .configure = gemma3,
     .prefix = "model.",
     .names = kGemma,
     .shared = kLlama,
     .rounds_embedding_scale = true},
    {"phi3", phi3, "model.", kPhi3, kLlama},
    {"gpt_oss", gpt_oss, "model.", kGptOss, kLlama},
    {.model_type = "minimind",
     .configure = minimind_1,
     .prefix = "",
     .names = kMeta,
     .ignored = kMask,
     .only_with = "dim"},
    {"minimind", minimind, "model.", kLlama},
};

}  // namespace

std::span<const HfFamily> hf_llama_families() { return kLlamaFamilies; }

}  // namespace regard
