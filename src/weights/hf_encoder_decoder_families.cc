// Encoder-decoders: the decoder reads its own text and the encoded source.

#include <cmath>

#include "weights/hf_family.h"
#include "weights/hf_settings.h"

namespace regard {
namespace {

// What encoder and decoder share; `layers` and the like are those of the side.
ModelConfig t5(HfKeys& keys, bool decoder) {
  ModelConfig c;
  const std::int64_t layers = keys.layers({"num_layers"});
  const bool differ = keys.find_extent({"num_decoder_layers"}).has_value();
  c.layers = decoder && differ ? keys.layers({"num_decoder_layers"}) : layers;
  c.width = c.embedding_width = keys.extent({"d_model"});
  c.vocabulary = keys.extent({"vocab_size"});
  c.hidden = keys.extent({"d_ff"});
  const std::int64_t heads = keys.extent({"num_heads"});
  hf_heads(keys, c, heads, heads, "d_kv");
  c.attention_scale = 1;     // scores are not scaled
  keys.find("n_positions");  // of the training texts: distances have no end
  c.norm_epsilon = keys.epsilon_or("layer_norm_epsilon", 1e-6);
  c.norm_bias = c.query_bias = c.output_bias = c.mlp_bias = c.head_bias = Bias::no;
  c.rotary = false;
  c.relative_buckets = keys.find_extent({"relative_attention_num_buckets"}).value_or(32);
  c.relative_distance = keys.find_extent({"relative_attention_max_distance"}).value_or(128);
  if (c.relative_buckets < 4 || c.relative_distance <= c.relative_buckets / 2)
    keys.bad("relative_attention_num_buckets", "leaves no room for the logarithmic half");
  const std::string kind = keys.string_or("feed_forward_proj", "relu");
  c.gated = kind.starts_with("gated-");
  if (kind == "relu" || kind == "gated-relu")
    c.activation = Activation::relu;
  else if (kind == "gated-gelu" || kind == "gelu_new")
    c.activation = Activation::gelu_tanh;
  else if (kind == "gated-silu")
    c.activation = Activation::silu;
  else
    keys.refuse("feed_forward_proj", "is '" + kind + "', which is not supported");
  for (const char* said_by_it : {"dense_act_fn", "is_gated_act"}) keys.find(said_by_it);
  keys.expect("is_encoder_decoder", true);
  keys.expect("is_decoder", false);
  const bool tied = keys.flag_or("tie_word_embeddings", true);
  const bool scaled = keys.flag_or("scale_decoder_outputs", tied);
  if (!decoder) {
    c.causal = false;
    c.head = false;
    return c;
  }
  c.cross_attention = true;
  c.tied_head = tied;
  if (scaled) c.head_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.width)));
  const std::int64_t start = keys.find_integer("decoder_start_token_id").value_or(0);
  if (start < 0 || start >= c.vocabulary) keys.bad("decoder_start_token_id", "is outside the vocabulary");
  c.decoder_start = static_cast<std::int32_t>(start);
  return c;
}

ModelConfig t5_encoder(HfKeys& keys) { return t5(keys, false); }
ModelConfig t5_decoder(HfKeys& keys) { return t5(keys, true); }

constexpr std::int64_t kMostTable = 64 << 20;  // bytes of positions that are not stored but made; Marian's take one MiB

ModelConfig marian(HfKeys& keys, bool decoder) {
  ModelConfig c;
  const auto side = [&](std::string_view of_encoder, std::string_view of_decoder) {
    const std::int64_t encoder = keys.extent({of_encoder});
    const std::int64_t mine = keys.extent({of_decoder});
    return decoder ? mine : encoder;
  };
  side("encoder_layers", "decoder_layers");  // both must be there
  c.layers = keys.layers({decoder ? "decoder_layers" : "encoder_layers"});
  keys.find("num_hidden_layers");  // the same as encoder_layers
  c.width = c.embedding_width = keys.extent({"d_model"});
  c.vocabulary = keys.extent({"vocab_size"});
  const std::int64_t decoder_vocabulary = keys.find_extent({"decoder_vocab_size"}).value_or(c.vocabulary);
  if (!keys.flag_or("share_encoder_decoder_embeddings", true) || decoder_vocabulary != c.vocabulary)
    keys.refuse("decoder_vocab_size", "differs from 'vocab_size': two vocabularies are not supported");
  c.hidden = side("encoder_ffn_dim", "decoder_ffn_dim");
  const std::int64_t heads = side("encoder_attention_heads", "decoder_attention_heads");
  hf_heads(keys, c, heads, heads);
  c.context = keys.extent({"max_position_embeddings"});
  if (c.context > kMostTable / (c.width * 4))
    keys.refuse("max_position_embeddings", "is too large: a table of so many positions is not made");
  c.norm = NormKind::layer;
  c.norm_place = NormPlace::after;
  c.norm_bias = c.query_bias = c.output_bias = c.mlp_bias = Bias::yes;
  c.final_norm = false;
  c.gated = false;
  c.activation = hf_activation(keys, "activation_function", "gelu");
  c.rotary = false;
  c.position_table = c.sinusoidal = true;
  if (keys.flag_or("scale_embedding", false))
    c.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(c.width)));
  for (const char* key :
       {"normalize_before", "normalize_embedding", "add_final_layer_norm", "add_bias_logits", "is_decoder"})
    keys.expect(key, false);
  for (const char* key : {"static_position_embeddings", "is_encoder_decoder"}) keys.expect(key, true);
  keys.find("extra_pos_embeddings");
  c.tied_head = keys.flag_or("tie_word_embeddings", true);
  const std::int64_t start = keys.find_integer("decoder_start_token_id").value_or(c.vocabulary - 1);
  if (start < 0 || start >= c.vocabulary) keys.bad("decoder_start_token_id", "is outside the vocabulary");
  if (!decoder) {
    c.causal = false;
    c.head = false;
    return c;
  }
  c.cross_attention = true;
  c.head_bias = Bias::yes;
  c.decoder_start = static_cast<std::int32_t>(start);
  return c;
}

ModelConfig marian_encoder(HfKeys& keys) { return marian(keys, false); }
ModelConfig marian_decoder(HfKeys& keys) { return marian(keys, true); }

constexpr HfName kT5[] = {
    {"token_embd", "^shared"},
    {"output", "^lm_head"},
    {"attn_rel_b", "block.0.layer.0.SelfAttention.relative_attention_bias"},
    {"output_norm", "final_layer_norm"},
    {"attn_norm", "block.{l}.layer.0.layer_norm"},
    {"attn_q", "block.{l}.layer.0.SelfAttention.q"},
    {"attn_k", "block.{l}.layer.0.SelfAttention.k"},
    {"attn_v", "block.{l}.layer.0.SelfAttention.v"},
    {"attn_output", "block.{l}.layer.0.SelfAttention.o"},
    {"cross_attn_norm", "block.{l}.layer.1.layer_norm"},
    {"cross_attn_q", "block.{l}.layer.1.EncDecAttention.q"},
    {"cross_attn_k", "block.{l}.layer.1.EncDecAttention.k"},
    {"cross_attn_v", "block.{l}.layer.1.EncDecAttention.v"},
    {"cross_attn_output", "block.{l}.layer.1.EncDecAttention.o"},
};

// The feed-forward is the last of a block's layers.
constexpr HfName kT5Encoder[] = {
    {"ffn_norm", "block.{l}.layer.1.layer_norm"},
    {.canonical = "ffn_gate", .stored = "block.{l}.layer.1.DenseReluDense.wi_0", .mlp = HfMlp::gated},
    {.canonical = "ffn_up", .stored = "block.{l}.layer.1.DenseReluDense.wi_1", .mlp = HfMlp::gated},
    {.canonical = "ffn_up", .stored = "block.{l}.layer.1.DenseReluDense.wi", .mlp = HfMlp::plain},
    {"ffn_down", "block.{l}.layer.1.DenseReluDense.wo"},
};
constexpr HfName kT5Decoder[] = {
    {"ffn_norm", "block.{l}.layer.2.layer_norm"},
    {.canonical = "ffn_gate", .stored = "block.{l}.layer.2.DenseReluDense.wi_0", .mlp = HfMlp::gated},
    {.canonical = "ffn_up", .stored = "block.{l}.layer.2.DenseReluDense.wi_1", .mlp = HfMlp::gated},
    {.canonical = "ffn_up", .stored = "block.{l}.layer.2.DenseReluDense.wi", .mlp = HfMlp::plain},
    {"ffn_down", "block.{l}.layer.2.DenseReluDense.wo"},
};

constexpr HfName kMarian[] = {
    {"token_embd", "^model.shared"},
    {"output", "^lm_head"},
    {.canonical = "output.bias", .stored = "^final_logits_bias", .row = true},
    {"attn_q", "layers.{l}.self_attn.q_proj"},
    {"attn_k", "layers.{l}.self_attn.k_proj"},
    {"attn_v", "layers.{l}.self_attn.v_proj"},
    {"attn_output", "layers.{l}.self_attn.out_proj"},
    {"attn_output_norm", "layers.{l}.self_attn_layer_norm"},
    {"cross_attn_q", "layers.{l}.encoder_attn.q_proj"},
    {"cross_attn_k", "layers.{l}.encoder_attn.k_proj"},
    {"cross_attn_v", "layers.{l}.encoder_attn.v_proj"},
    {"cross_attn_output", "layers.{l}.encoder_attn.out_proj"},
    {"cross_attn_output_norm", "layers.{l}.encoder_attn_layer_norm"},
    {"ffn_up", "layers.{l}.fc1"},
    {"ffn_down", "layers.{l}.fc2"},
    {"layer_output_norm", "layers.{l}.final_layer_norm"},
};

using Twin = std::pair<std::string_view, std::string_view>;
constexpr Twin kT5EncoderTwins[] = {{"encoder.embed_tokens.weight", "shared.weight"}};
constexpr Twin kT5DecoderTwins[] = {{"decoder.embed_tokens.weight", "shared.weight"}};
constexpr Twin kMarianEncoderTwins[] = {{"model.encoder.embed_tokens.weight", "model.shared.weight"}};
constexpr Twin kMarianDecoderTwins[] = {{"model.decoder.embed_tokens.weight", "model.shared.weight"}};
// Of cross attention, in older files, and never read; made anew from their formula.
constexpr std::string_view kUnusedBias[] = {"EncDecAttention.relative_attention_bias.weight"};
constexpr std::string_view kMadePositions[] = {"embed_positions.weight"};

constexpr HfFamily kT5EncoderFamily = {.model_type = "t5",
                                       .configure = t5_encoder,
                                       .prefix = "encoder.",
                                       .names = kT5Encoder,
                                       .shared = kT5,
                                       .twins = kT5EncoderTwins};
constexpr HfFamily kMarianEncoderFamily = {.model_type = "marian",
                                           .configure = marian_encoder,
                                           .prefix = "model.encoder.",
                                           .names = kMarian,
                                           .twins = kMarianEncoderTwins};
constexpr HfFamily kEncoderDecoderFamilies[] = {
    {.model_type = "t5",
     .configure = t5_decoder,
     .prefix = "decoder.",
     .names = kT5Decoder,
     .shared = kT5,
     .twins = kT5DecoderTwins,
     .ignored = kUnusedBias,
     .encoder = &kT5EncoderFamily,
     .untied = "lm_head.weight"},
    {.model_type = "marian",
     .configure = marian_decoder,
     .prefix = "model.decoder.",
     .names = kMarian,
     .twins = kMarianDecoderTwins,
     .ignored = kMadePositions,
     .encoder = &kMarianEncoderFamily},
};

}  // namespace

std::span<const HfFamily> hf_encoder_decoder_families() { return kEncoderDecoderFamilies; }

}  // namespace regard
