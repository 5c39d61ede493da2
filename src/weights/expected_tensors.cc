#include "weights/expected_tensors.h"

#include <fmt/core.h>

namespace regard {
namespace {

class List {
 public:
  explicit List(const ModelConfig& config) : c(config) {}

  void vector(std::string name, std::int64_t n, bool optional = false) {
    all.push_back({std::move(name), 1, n, true, optional});
  }
  void matrix(std::string name, std::int64_t rows, std::int64_t cols, bool optional = false) {
    all.push_back({std::move(name), rows, cols, false, optional});
  }
  void bias(const std::string& name, std::int64_t n, Bias bias) {
    if (bias != Bias::no) vector(name + ".bias", n, bias == Bias::maybe);
  }
  void linear(const std::string& name, std::int64_t rows, std::int64_t cols, Bias with) {
    matrix(name + ".weight", rows, cols);
    bias(name, rows, with);
  }
  void norm(const std::string& name, std::int64_t n, bool optional = false) {
    vector(name + ".weight", n, optional);
    if (c.norm == NormKind::layer) bias(name, n, optional ? Bias::maybe : c.norm_bias);
  }
  void feed_forward(const std::string& block, const std::string& which, std::int64_t hidden) {
    if (c.gated) linear(block + "ffn_gate" + which, hidden, c.width, c.mlp_bias);
    linear(block + "ffn_up" + which, hidden, c.width, c.mlp_bias);
    linear(block + "ffn_down" + which, c.width, hidden, c.mlp_bias);
  }

  const ModelConfig& c;
  std::vector<ExpectedTensor> all;
};

void layer(List& list, std::int64_t l) {
  const ModelConfig& c = list.c;
  const std::string block = fmt::format("blk.{}.", l);
  const bool after = c.norm_place == NormPlace::after;
  // ModernBERT has none before its first attention.
  list.norm(block + (after ? "attn_output_norm" : "attn_norm"), c.width, !c.causal && l == 0 && !after);
  list.linear(block + "attn_q", c.heads * c.head_dim, c.width, c.query_bias);
  list.linear(block + "attn_k", c.kv_heads * c.head_dim, c.width, c.query_bias);
  list.linear(block + "attn_v", c.kv_heads * c.value_dim, c.width, c.query_bias);
  list.linear(block + "attn_output", c.width, c.heads * c.value_dim, c.output_bias);
  if (c.query_key_norm) {
    list.norm(block + "attn_q_norm", c.head_dim);
    list.norm(block + "attn_k_norm", c.head_dim);
  }
  if (c.sinks) list.vector(block + "attn_sinks.weight", c.heads);
  if (c.norm_place == NormPlace::around) {
    list.norm(block + "post_attention_norm", c.width);
    list.norm(block + "post_ffw_norm", c.width);
  }
  if (c.cross_attention) {
    list.norm(block + (after ? "cross_attn_output_norm" : "cross_attn_norm"), c.width);
    list.linear(block + "cross_attn_q", c.heads * c.head_dim, c.width, c.query_bias);
    list.linear(block + "cross_attn_k", c.kv_heads * c.head_dim, c.width, c.query_bias);
    list.linear(block + "cross_attn_v", c.kv_heads * c.value_dim, c.width, c.query_bias);
    list.linear(block + "cross_attn_output", c.width, c.heads * c.value_dim, c.output_bias);
  }
  list.norm(block + (after ? "layer_output_norm" : "ffn_norm"), c.width);
  if (!c.mixture.at(l)) return list.feed_forward(block, "", c.hidden);
  list.all.push_back(expected_router(c, l));
  list.bias(block + "ffn_gate_inp", c.mixture.experts, c.mlp_bias);
  for (std::int64_t e = 0; e < c.mixture.experts; ++e)
    list.feed_forward(block, fmt::format(".{}", e), c.mixture.hidden);
}

}  // namespace

ExpectedTensor expected_router(const ModelConfig& c, std::int64_t layer) {
  return {fmt::format("blk.{}.ffn_gate_inp.weight", layer), c.mixture.experts, c.width, false, false};
}

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& c) {
  List list(c);
  list.matrix("token_embd.weight", c.vocabulary, c.embedding_width);
  if (c.embedding_width != c.width) list.linear("token_embd_proj", c.width, c.embedding_width, Bias::no);
  if (c.position_table && !c.sinusoidal) list.matrix("position_embd.weight", c.context + c.position_offset, c.width);
  if (c.token_types) list.matrix("token_types.weight", c.token_types, c.width);
  if (c.embedding_norm) list.norm("token_embd_norm", c.width);
  if (c.relative_buckets > 0) list.matrix("attn_rel_b.weight", c.relative_buckets, c.heads);
  for (std::int64_t l = 0; l < c.layers; ++l) layer(list, l);
  if (c.final_norm) list.norm("output_norm", c.width);
  if (c.head) {
    if (c.embedding_width != c.width) list.linear("output_proj", c.embedding_width, c.width, Bias::no);
    if (c.head_transform) {
      list.linear("output_transform", c.width, c.width, Bias::maybe);
      list.norm("output_transform_norm", c.width);
    }
    if (!c.tied_head) list.matrix("output.weight", c.vocabulary, c.embedding_width);
    list.bias("output", c.vocabulary, c.head_bias);
  }
  if (c.rotary) list.vector("rope_freqs.weight", c.rotary_global.dim / 2, true);
  return list.all;
}

}  // namespace regard
