// Encoders: every row reads the whole text.

#include "weights/hf_family.h"
#include "weights/hf_settings.h"

namespace regard {
namespace {

ModelConfig bert_like(HfKeys& keys) {
  ModelConfig c = hf_sizes(keys);
  c.causal = false;
  c.norm = NormKind::layer;
  c.norm_bias = Bias::yes;
  c.norm_place = NormPlace::after;
  c.norm_epsilon = keys.epsilon_or("layer_norm_eps", 1e-12);
  c.final_norm = false;
  c.gated = false;
  c.query_bias = c.output_bias = c.mlp_bias = Bias::yes;
  c.rotary = false;
  c.position_table = true;
  if (c.context == 0) keys.bad("max_position_embeddings", "is missing");
  c.embedding_norm = true;
  c.head_transform = true;
  c.head_bias = Bias::yes;
  c.tied_head = keys.flag_or("tie_word_embeddings", true);
  return c;
}

ModelConfig bert(HfKeys& keys) {
  ModelConfig c = bert_like(keys);
  c.hidden = keys.extent({"intermediate_size"});
  c.activation = c.head_activation = hf_activation(keys, "hidden_act", "gelu");
  c.token_types = keys.extent({"type_vocab_size"});
  keys.expect("is_decoder", false);
  keys.expect("add_cross_attention", false);
  if (keys.string_or("position_embedding_type", "absolute") != "absolute")
    keys.refuse("position_embedding_type", "is not 'absolute'");
  return c;
}

// Positions are counted from behind the padding token's id.
ModelConfig roberta(HfKeys& keys) {
  ModelConfig c = bert(keys);
  const std::int64_t padding = keys.find_integer("pad_token_id").value_or(1);
  if (padding < 0 || padding >= c.context - 1) keys.bad("pad_token_id", "leaves no room for positions");
  c.position_offset = padding + 1;
  c.context -= c.position_offset;
  c.head_activation = Activation::gelu_erf;
  return c;
}

ModelConfig distilbert(HfKeys& keys) {
  ModelConfig c = bert_like(keys);
  c.hidden = keys.extent({"hidden_dim"});
  c.activation = c.head_activation = hf_activation(keys, "activation", "gelu");
  keys.expect("tie_weights_", true);
  return c;
}

ModelConfig modernbert(HfKeys& keys) {
  ModelConfig c = hf_sizes(keys);
  c.causal = false;
  c.norm = NormKind::layer;
  c.norm_bias = has_bias(keys.flag_or("norm_bias", false));
  c.norm_epsilon = keys.epsilon_or("norm_eps", 1e-5);
  c.embedding_norm = true;
  c.hidden = keys.extent({"intermediate_size"});
  c.activation = hf_activation(keys, "hidden_activation", "gelu");
  c.query_bias = c.output_bias = has_bias(keys.flag_or("attention_bias", false));
  c.mlp_bias = has_bias(keys.flag_or("mlp_bias", false));
  c.head_transform = true;
  c.head_activation = hf_activation(keys, "classifier_activation", "gelu");
  c.head_bias = has_bias(keys.flag_or("decoder_bias", true));
  c.tied_head = keys.flag_or("tie_word_embeddings", true);
  HfRope rope;
  rope.base = 160000;
  rope.base_key = "global_rope_theta";
  rope.local_base = 10000;
  rope.local_base_key = "local_rope_theta";
  if (keys.says_null(rope.local_base_key)) rope.local_base = keys.positive_or(rope.base_key, rope.base);
  hf_rope(keys, c, rope);
  for (const char* unread : {"position_embedding_type", "layer_norm_eps"}) keys.find(unread);
  // local_attention is the width of the whole window: its half on either side.
  const std::int64_t window = keys.find_extent({"local_attention"}).value_or(128) / 2 + 1;
  const std::int64_t every = keys.find_extent({"global_attn_every_n_layers"}).value_or(3);
  hf_windows(keys, c, window, [&](std::int64_t l) { return l % every != 0; });
  return c;
}

constexpr HfName kBertNames[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"attn_q", "encoder.layer.{l}.attention.self.query"},
    {"attn_k", "encoder.layer.{l}.attention.self.key"},
    {"attn_v", "encoder.layer.{l}.attention.self.value"},
    {"attn_output", "encoder.layer.{l}.attention.output.dense"},
    {"attn_output_norm", "encoder.layer.{l}.attention.output.LayerNorm"},
    {"ffn_up", "encoder.layer.{l}.intermediate.dense"},
    {"ffn_down", "encoder.layer.{l}.output.dense"},
    {"layer_output_norm", "encoder.layer.{l}.output.LayerNorm"},
    {"output_transform", "^cls.predictions.transform.dense"},
    {"output_transform_norm", "^cls.predictions.transform.LayerNorm"},
    {"output", "^cls.predictions.decoder"},
    {"output.bias", "^cls.predictions.bias"},
};

constexpr HfName kRoberta[] = {
    {"output_transform", "^lm_head.dense"},
    {"output_transform_norm", "^lm_head.layer_norm"},
    {"output", "^lm_head.decoder"},
    {"output.bias", "^lm_head.bias"},
};

constexpr HfName kDistilbert[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"attn_q", "transformer.layer.{l}.attention.q_lin"},
    {"attn_k", "transformer.layer.{l}.attention.k_lin"},
    {"attn_v", "transformer.layer.{l}.attention.v_lin"},
    {"attn_output", "transformer.layer.{l}.attention.out_lin"},
    {"attn_output_norm", "transformer.layer.{l}.sa_layer_norm"},
    {"ffn_up", "transformer.layer.{l}.ffn.lin1"},
    {"ffn_down", "transformer.layer.{l}.ffn.lin2"},
    {"layer_output_norm", "transformer.layer.{l}.output_layer_norm"},
    {"output_transform", "^vocab_transform"},
    {"output_transform_norm", "^vocab_layer_norm"},
    {"output", "^vocab_projector"},
};

constexpr HfName kModernbert[] = {
    {"token_embd", "embeddings.tok_embeddings"},
    {"token_embd_norm", "embeddings.norm"},
    {"output_norm", "final_norm"},
    {"attn_norm", "layers.{l}.attn_norm"},
    {"attn_q", "layers.{l}.attn.Wqkv", HfRows::q},
    {"attn_k", "layers.{l}.attn.Wqkv", HfRows::k},
    {"attn_v", "layers.{l}.attn.Wqkv", HfRows::v},
    {"attn_output", "layers.{l}.attn.Wo"},
    {"ffn_norm", "layers.{l}.mlp_norm"},
    {"ffn_gate", "layers.{l}.mlp.Wi", HfRows::first_half},
    {"ffn_up", "layers.{l}.mlp.Wi", HfRows::second_half},
    {"ffn_down", "layers.{l}.mlp.Wo"},
    {"output_transform", "^head.dense"},
    {"output_transform_norm", "^head.norm"},
    {"output", "^decoder"},
};

// Other tasks' heads; what is made for a whole text.
constexpr std::string_view kOtherTasks[] = {"pooler.dense.weight", "pooler.dense.bias", "cls.seq_relationship.weight",
                                            "cls.seq_relationship.bias"};
constexpr std::pair<std::string_view, std::string_view> kBertTwins[] = {
    {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
constexpr std::pair<std::string_view, std::string_view> kRobertaTwins[] = {{"lm_head.decoder.bias", "lm_head.bias"}};

constexpr HfFamily roberta_family(std::string_view model_type) {
  return {.model_type = model_type,
          .configure = roberta,
          .prefix = "roberta.",
          .names = kRoberta,
          .shared = kBertNames,
          .head = "lm_head.dense.weight",
          .twins = kRobertaTwins,
          .ignored = kOtherTasks};
}

constexpr HfFamily kEncoderFamilies[] = {
    {.model_type = "bert",
     .configure = bert,
     .prefix = "bert.",
     .names = kBertNames,
     .head = "cls.predictions.transform.dense.weight",
     .twins = kBertTwins,
     .ignored = kOtherTasks},
    roberta_family("roberta"),
    roberta_family("xlm-roberta"),
    {.model_type = "distilbert",
     .configure = distilbert,
     .prefix = "distilbert.",
     .names = kDistilbert,
     .head = "vocab_transform.weight"},
    {.model_type = "modernbert",
     .configure = modernbert,
     .prefix = "model.",
     .names = kModernbert,
     .head = "head.dense.weight"},
};

}  // namespace

std::span<const HfFamily> hf_encoder_families() { return kEncoderFamilies; }

}  // namespace regard
