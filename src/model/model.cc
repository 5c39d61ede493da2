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
  return {checkpoint.matrix(name + ".weight"), optional_vector(checkpoint, name + ".bias"), {}};
}

Norm norm(const Checkpoint& checkpoint, const std::string& name) {
  return {vector(checkpoint, name + ".weight"), optional_vector(checkpoint, name + ".bias")};
}

// The checkpoint has seen to it that every matrix is there and has the shape that the configuration calls for.
Layer find_layer(const Checkpoint& w, const ModelConfig& c, std::int64_t index) {
  const std::string at = fmt::format("blk.{}.", index);
  Layer layer;
  layer.attention_norm = norm(w, at + "attn_norm");
  layer.mlp_norm = norm(w, at + "ffn_norm");
  if (c.post_norms) {
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
  if (c.gated) layer.gate = linear(w, at + "ffn_gate");
  layer.up = linear(w, at + "ffn_up");
  layer.down = linear(w, at + "ffn_down");
  return layer;
}

}  // namespace

Model::Model(Checkpoint checkpoint, Packing packing)
    : checkpoint_(std::move(checkpoint)), tokenizer_(checkpoint_.tokenizer) {
  const ModelConfig& c = checkpoint_.config;
  embedding_ = checkpoint_.matrix("token_embd.weight");
  for (std::int64_t layer = 0; layer < c.layers; ++layer) layers_.push_back(find_layer(checkpoint_, c, layer));
  final_norm_ = norm(checkpoint_, "output_norm");
  head_ = c.tied_head ? Linear{embedding_, {}, {}} : linear(checkpoint_, "output");
  if (packing == Packing::all) pack();
}

namespace {

// fn(linear) for every matrix that can be packed.
template <typename Layers, typename Head, typename Fn>
void each_packable(Layers& layers, Head& head, Fn&& fn) {
  const auto visit = [&](auto& linear) {
    if (linear.weight.data != nullptr && packs(linear.weight.dtype)) fn(linear);
  };
  for (auto& l : layers)
    for (auto* linear : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) visit(*linear);
  visit(head);
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
