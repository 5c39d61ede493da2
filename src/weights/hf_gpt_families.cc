// GPT-2 and its relatives: LayerNorm with biases, plain feed-forwards, mostly learned positions.

#include "weights/hf_family.h"
#include "weights/hf_settings.h"

namespace regard {
namespace {

ModelConfig gpt_like(HfKeys& keys) {
  ModelConfig c = hf_sizes(keys);
  c.norm = NormKind::layer;
  c.norm_bias = Bias::yes;
  c.gated = false;
  c.query_bias = c.output_bias = c.mlp_bias = Bias::yes;
  c.head_bias = Bias::no;
  return c;
}

void learned_positions(HfKeys& keys, ModelConfig& c) {
  c.rotary = false;
  c.position_table = true;
  if (c.context == 0) keys.bad("max_position_embeddings", "is missing");
}

ModelConfig gpt2(HfKeys& keys) {
  ModelConfig c = gpt_like(keys);
  learned_positions(keys, c);
  keys.find("n_ctx");  // an older name of the same
  c.hidden = keys.find_extent({"n_inner"}).value_or(4 * c.width);
  keys.expect("feed_forward_length", static_cast<double>(c.hidden));  // a GGUF's, saved by transformers
  c.norm_epsilon = keys.epsilon_or("layer_norm_epsilon", 1e-5);
  c.activation = hf_activation(keys, "activation_function", "gelu_new");
  if (!keys.flag_or("scale_attn_weights", true)) c.attention_scale = 1;
  c.scale_by_layer = keys.flag_or("scale_attn_by_inverse_layer_idx", false);
  keys.flag_or("reorder_and_upcast_attn", false);  // scores in f32: they always are
  keys.expect("add_cross_attention", false);
  c.tied_head = keys.flag_or("tie_word_embeddings", true);
  return c;
}

ModelConfig gpt_neox(HfKeys& keys) {
  ModelConfig c = gpt_like(keys);
  c.hidden = keys.extent({"intermediate_size"});
  c.norm_epsilon = keys.epsilon_or("layer_norm_eps", 1e-5);
  c.activation = hf_activation(keys, "hidden_act", "gelu");
  c.parallel_branches = keys.flag_or("use_parallel_residual", true);
  c.query_bias = c.output_bias = has_bias(keys.flag_or("attention_bias", true));
  c.tied_head = keys.flag_or("tie_word_embeddings", false);
  HfRope rope;
  rope.base_key = "rotary_emb_base";
  rope.partial = 0.25;
  rope.partial_key = "rotary_pct";
  hf_rope(keys, c, rope);
  // Newer names of the same, which transformers writes beside the older ones and does not read.
  keys.expect("rope_theta", keys.positive_or(rope.base_key, rope.base));
  keys.expect("partial_rotary_factor", keys.positive_or(rope.partial_key, rope.partial));
  keys.find("is_decoder");
  return c;
}

// "attention_layers", or "attention_types" [[["global", "local"], 12]]: each list so many times.
ModelConfig gpt_neo(HfKeys& keys) {
  ModelConfig c = gpt_like(keys);
  learned_positions(keys, c);
  c.query_bias = Bias::no;
  c.hidden = keys.find_extent({"intermediate_size"}).value_or(4 * c.width);
  c.norm_epsilon = keys.epsilon_or("layer_norm_epsilon", 1e-5);
  c.activation = hf_activation(keys, "activation_function", "gelu_new");
  c.attention_scale = 1;  // scores are not scaled
  c.tied_head = keys.flag_or("tie_word_embeddings", true);
  const std::int64_t window = keys.find_extent({"window_size"}).value_or(256);
  std::vector<std::string> kinds;
  const auto types = keys.find("attention_types");
  if (const auto layers = keys.find("attention_layers")) {
    for (const JsonPlace& kind : layers->elements()) kinds.emplace_back(kind.string());
  } else if (types) {
    for (const JsonPlace& item : types->elements()) {
      const JsonPlace list = item.at(std::size_t{0});
      const std::int64_t times = list.size() > 0 ? item.at(std::size_t{1}).integer() : 0;
      for (std::int64_t i = 0; i < times && std::ssize(kinds) <= c.layers; ++i)
        for (const JsonPlace& kind : list.elements()) kinds.emplace_back(kind.string());
    }
  } else {
    for (std::int64_t l = 0; l < c.layers; ++l) kinds.emplace_back(l % 2 == 0 ? "global" : "local");
  }
  if (std::ssize(kinds) != c.layers) keys.bad("attention_types", "does not give each layer one type");
  for (std::int64_t l = 0; l < c.layers; ++l) {
    const std::string& kind = kinds[static_cast<std::size_t>(l)];
    if (kind != "global" && kind != "local") keys.refuse("attention_types", "names a type other than global and local");
    c.window[static_cast<std::size_t>(l)] = kind == "local" ? window : 0;
  }
  return c;
}

ModelConfig opt(HfKeys& keys) {
  ModelConfig c = gpt_like(keys);
  learned_positions(keys, c);
  c.position_offset = 2;  // OPTLearnedPositionalEmbedding
  c.hidden = keys.extent({"ffn_dim"});
  c.embedding_width = keys.find_extent({"word_embed_proj_dim"}).value_or(c.width);
  c.activation = hf_activation(keys, "activation_function", "relu");
  for (const char* key : {"layer_norm_elementwise_affine", "learned_embeddings"}) keys.expect(key, true);
  c.query_bias = c.output_bias = c.mlp_bias = has_bias(keys.flag_or("enable_bias", true));
  const bool before = keys.flag_or("do_layer_norm_before", true);
  const bool removed = keys.flag_or("_remove_final_layer_norm", false);
  c.norm_place = before ? NormPlace::before : NormPlace::after;
  c.final_norm = before && !removed;
  c.tied_head = keys.flag_or("tie_word_embeddings", true);
  return c;
}

constexpr HfName kGpt2[] = {
    {"token_embd", "wte"},
    {"position_embd", "wpe"},
    {"output_norm", "ln_f"},
    {"output", "^lm_head"},
    {"attn_norm", "h.{l}.ln_1"},
    {"attn_q", "h.{l}.attn.c_attn", HfRows::q, true},
    {"attn_k", "h.{l}.attn.c_attn", HfRows::k, true},
    {"attn_v", "h.{l}.attn.c_attn", HfRows::v, true},
    {"attn_output", "h.{l}.attn.c_proj", HfRows::all, true},
    {"ffn_norm", "h.{l}.ln_2"},
    {"ffn_up", "h.{l}.mlp.c_fc", HfRows::all, true},
    {"ffn_down", "h.{l}.mlp.c_proj", HfRows::all, true},
};

constexpr HfName kGptNeoX[] = {
    {"token_embd", "embed_in"},
    {"output_norm", "final_layer_norm"},
    {"output", "^embed_out"},
    {"attn_norm", "layers.{l}.input_layernorm"},
    {"attn_q", "layers.{l}.attention.query_key_value", HfRows::head_q},
    {"attn_k", "layers.{l}.attention.query_key_value", HfRows::head_k},
    {"attn_v", "layers.{l}.attention.query_key_value", HfRows::head_v},
    {"attn_output", "layers.{l}.attention.dense"},
    {"ffn_norm", "layers.{l}.post_attention_layernorm"},
    {"ffn_up", "layers.{l}.mlp.dense_h_to_4h"},
    {"ffn_down", "layers.{l}.mlp.dense_4h_to_h"},
};

constexpr HfName kGptNeo[] = {
    {"token_embd", "wte"},
    {"position_embd", "wpe"},
    {"output_norm", "ln_f"},
    {"output", "^lm_head"},
    {"attn_norm", "h.{l}.ln_1"},
    {"attn_q", "h.{l}.attn.attention.q_proj"},
    {"attn_k", "h.{l}.attn.attention.k_proj"},
    {"attn_v", "h.{l}.attn.attention.v_proj"},
    {"attn_output", "h.{l}.attn.attention.out_proj"},
    {"ffn_norm", "h.{l}.ln_2"},
    {"ffn_up", "h.{l}.mlp.c_fc"},
    {"ffn_down", "h.{l}.mlp.c_proj"},
};

// The norms' names are the same before (all but the 350M) and behind the branches.
constexpr HfName kOpt[] = {
    {"token_embd", "embed_tokens"},
    {"token_embd_proj", "project_in"},
    {"position_embd", "embed_positions"},
    {"output_norm", "final_layer_norm"},
    {"output_proj", "project_out"},
    {"output", "^lm_head"},
    {"attn_norm", "layers.{l}.self_attn_layer_norm"},
    {"attn_output_norm", "layers.{l}.self_attn_layer_norm"},
    {"attn_q", "layers.{l}.self_attn.q_proj"},
    {"attn_k", "layers.{l}.self_attn.k_proj"},
    {"attn_v", "layers.{l}.self_attn.v_proj"},
    {"attn_output", "layers.{l}.self_attn.out_proj"},
    {"ffn_norm", "layers.{l}.final_layer_norm"},
    {"layer_output_norm", "layers.{l}.final_layer_norm"},
    {"ffn_up", "layers.{l}.fc1"},
    {"ffn_down", "layers.{l}.fc2"},
};

constexpr HfFamily kGptFamilies[] = {
    {"gpt2", gpt2, "transformer.", kGpt2},
    {"gpt_neox", gpt_neox, "gpt_neox.", kGptNeoX},
    {"gpt_neo", gpt_neo, "transformer.", kGptNeo},
    {"opt", opt, "model.decoder.", kOpt},
};

}  // namespace

std::span<const HfFamily> hf_gpt_families() { return kGptFamilies; }

}  // namespace regard
