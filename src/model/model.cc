#include "model/model.h"

#include <utility>

#include "kernels/dequantize.h"
#include "tensor/error.h"

namespace regard {
namespace {

std::vector<float> vector(const Checkpoint& checkpoint, const std::string& name) {
  const Matrix& m = checkpoint.matrix(name);
  std::vector<float> values(static_cast<std::size_t>(m.cols));
  dequantize(m, 0, 0, m.cols, values.data());
  return values;
}

std::vector<float> optional_vector(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.find(name) != nullptr ? vector(checkpoint, name) : std::vector<float>();
}

Linear linear(const Checkpoint& checkpoint, const std::string& name) {
  return {name, checkpoint.matrix(name + ".weight"), optional_vector(checkpoint, name + ".bias"), {}};
}

Norm norm(const Checkpoint& checkpoint, const std::string& name) {
  return {name, vector(checkpoint, name + ".weight"), optional_vector(checkpoint, name + ".bias")};
}

// One that the model may do without.
Norm optional_norm(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.find(name + ".weight") != nullptr ? norm(checkpoint, name) : Norm();
}

FeedForward feed_forward(const Checkpoint& w, const ModelConfig& c, const std::string& at, const std::string& which) {
  FeedForward mlp;
  if (c.gated) mlp.gate = linear(w, at + "ffn_gate" + which);
  mlp.up = linear(w, at + "ffn_up" + which);
  mlp.down = linear(w, at + "ffn_down" + which);
  return mlp;
}

// The checkpoint has seen to it that every matrix is there and has the shape that the configuration calls for.
Layer find_layer(const Checkpoint& w, const ModelConfig& c, std::int64_t index) {
  const std::string at = fmt::format("blk.{}.", index);
  const bool after = c.norm_place == NormPlace::after;
  Layer layer;
  layer.attention_norm = optional_norm(w, at + (after ? "attn_output_norm" : "attn_norm"));
  layer.mlp_norm = norm(w, at + (after ? "layer_output_norm" : "ffn_norm"));
  if (c.norm_place == NormPlace::around) {
    layer.post_attention_norm = norm(w, at + "post_attention_norm");
    layer.post_mlp_norm = norm(w, at + "post_ffw_norm");
  }
  if (c.query_key_norm) {
    layer.query_norm = norm(w, at + "attn_q_norm");
    layer.key_norm = norm(w, at + "attn_k_norm");
  }
  layer.q = linear(w, at + "attn_q");
  layer.k = linear(w, at + "attn_k");
  layer.v = linear(w, at + "attn_v");
  layer.o = linear(w, at + "attn_output");
  if (c.cross_attention)
    layer.cross = {norm(w, at + (after ? "cross_attn_output_norm" : "cross_attn_norm")), linear(w, at + "cross_attn_q"),
                   linear(w, at + "cross_attn_k"), linear(w, at + "cross_attn_v"), linear(w, at + "cross_attn_output")};
  if (c.sinks) layer.sinks = vector(w, at + "attn_sinks.weight");
  if (!c.mixture.at(index)) {
    layer.mlp = feed_forward(w, c, at, "");
    return layer;
  }
  layer.router = linear(w, at + "ffn_gate_inp");
  for (std::int64_t e = 0; e < c.mixture.experts; ++e)
    layer.experts.push_back(feed_forward(w, c, at, fmt::format(".{}", e)));
  return layer;
}

Embedding find_embedding(const Checkpoint& w, const ModelConfig& c) {
  Embedding embedding;
  embedding.tokens = w.matrix("token_embd.weight");
  if (c.embedding_width != c.width) embedding.projection = linear(w, "token_embd_proj");
  if (c.position_table) embedding.positions = w.matrix("position_embd.weight");
  if (c.token_types) {
    embedding.type.resize(static_cast<std::size_t>(c.width));
    dequantize(w.matrix("token_types.weight"), 0, 0, c.width, embedding.type.data());
  }
  if (c.embedding_norm) embedding.norm = norm(w, "token_embd_norm");
  return embedding;
}

Head find_head(const Checkpoint& w, const ModelConfig& c) {
  Head head;
  if (c.final_norm) head.final_norm = norm(w, "output_norm");
  if (!c.head) return head;
  if (c.embedding_width != c.width) head.projection = linear(w, "output_proj");
  if (c.head_transform) {
    head.transform = linear(w, "output_transform");
    head.transform_norm = norm(w, "output_transform_norm");
  }
  head.logits.weight = w.matrix(c.tied_head ? "token_embd.weight" : "output.weight");
  head.logits.bias = optional_vector(w, "output.bias");
  return head;
}

}  // namespace

Model::Model(Checkpoint checkpoint, Packing packing)
    : checkpoint_(std::move(checkpoint)), tokenizer_(checkpoint_.tokenizer) {
  const ModelConfig& c = checkpoint_.config;
  embedding_ = find_embedding(checkpoint_, c);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) layers_.push_back(find_layer(checkpoint_, c, layer));
  head_ = find_head(checkpoint_, c);
  if (c.relative_buckets > 0) {
    const Matrix& table = checkpoint_.matrix("attn_rel_b.weight");
    relative_bias_.resize(static_cast<std::size_t>(table.rows * table.cols));
    for (std::int64_t b = 0; b < table.rows; ++b) dequantize(table, b, 0, table.cols, &relative_bias_[b * table.cols]);
  }
  if (checkpoint_.encoder) {
    Checkpoint encoder = *checkpoint_.encoder;
    encoder.tokenizer = checkpoint_.tokenizer;
    encoder_ = std::make_unique<Model>(std::move(encoder));
  }
  if (packing == Packing::all) pack();
}

namespace {

// fn(linear) for every matrix that can be packed.
template <typename Layers, typename Head, typename Fn>
void each_packable(Layers& layers, Head& head, Fn&& fn) {
  const auto visit = [&](auto& linear) {
    if (linear.weight.data != nullptr && packs(linear.weight.dtype)) fn(linear);
  };
  const auto visit_mlp = [&](auto& mlp) {
    for (auto* linear : {&mlp.gate, &mlp.up, &mlp.down}) visit(*linear);
  };
  for (auto& l : layers) {
    for (auto* linear : {&l.q, &l.k, &l.v, &l.o}) visit(*linear);
    visit_mlp(l.mlp);
    for (auto& expert : l.experts) visit_mlp(expert);
  }
  visit(head.logits);
}

}  // namespace

std::int64_t Model::bytes_to_pack() const {
  std::int64_t bytes = 0;
  each_packable(layers_, head_, [&](const Linear& linear) { bytes += regard::packed_bytes(linear.weight); });
  return bytes;
}

// All in one piece of memory, for large pages.
void Model::pack() {
  packed_ = Buffer<std::byte>(bytes_to_pack());
  std::byte* at = packed_.data();
  each_packable(layers_, head_, [&](Linear& linear) {
    linear.packed = regard::pack(linear.weight, at);
    at += regard::packed_bytes(linear.weight);
  });
}

}  // namespace regard
