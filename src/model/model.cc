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

// All in one piece of memory, for large pages.
void Model::pack() {
  std::vector<Linear*> all;
  for (Layer& l : layers_) all.insert(all.end(), {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down});
  all.push_back(&head_);
  std::erase_if(all, [](const Linear* l) { return l->weight.data == nullptr || !packs(l->weight.dtype); });
  std::int64_t bytes = 0;
  for (const Linear* linear : all) bytes += regard::packed_bytes(linear->weight);
  packed_ = Buffer<std::byte>(bytes);
  std::byte* at = packed_.data();
  for (Linear* linear : all) {
    linear->packed = regard::pack(linear->weight, at);
    at += regard::packed_bytes(linear->weight);
  }
}

}  // namespace regard
