#include "model/source.h"

#include <algorithm>

#include "model/forward.h"
#include "model/layers.h"
#include "tensor/error.h"

namespace regard {

Tensor<float, 2> encode(const Model& encoder, std::span<const std::int32_t> ids, Tap* tap) {
  const ModelConfig& c = encoder.config();
  Tensor<float, 2> encoded({std::ssize(ids), c.width});
  State state(c, 1, std::ssize(ids));
  FeedOptions options;
  options.tap = tap;
  options.on_rows = [&](std::int64_t first, View<const float, 2> resid) {
    apply(encoder.head().final_norm, c, resid, encoded.view().slice(first, first + resid.shape[0]));
  };
  feed(encoder, state, ids, 0, options);
  return encoded;
}

void set_source(const Model& model, State& state, View<const float, 2> encoded, int sequence) {
  const ModelConfig& c = model.config();
  if (!c.cross_attention) throw Error(ErrorCode::usage, c.family + " has no encoder, so there is no source to read");
  const std::int64_t S = encoded.shape[0];
  if (S == 0) throw Error(ErrorCode::bad_input, "the source has no tokens");
  KeyValueCache& source = *state.source;
  source.reserve(sequence, S);
  Tensor<float, 2> k({S, c.kv_heads * c.head_dim}), v({S, c.kv_heads * c.value_dim});
  for (std::int64_t l = 0; l < c.layers; ++l) {
    const CrossAttention& cross = model.layers()[l].cross;
    apply(cross.k, encoded, k.view());
    apply(cross.v, encoded, v.view());
    for (std::int64_t s = 0; s < S; ++s) {
      std::copy_n(&k(s, 0), k.shape()[1], source.key(sequence, l, s));
      std::copy_n(&v(s, 0), v.shape()[1], source.value(sequence, l, s));
    }
  }
  source.set_length(sequence, S);
}

}  // namespace regard
