#pragma once
// The source text of an encoder-decoder: encoded once, then read by every layer of the decoder.

#include <cstdint>
#include <span>

#include "model/model.h"
#include "model/state.h"
#include "model/tap.h"
#include "tensor/buffer.h"

namespace regard {

// What the encoder says of each token: [S, C], its final norm applied. `tap` sees the encoder's sites.
Tensor<float, 2> encode(const Model& encoder, std::span<const std::int32_t> ids, Tap* tap = nullptr);

// Lays the keys and values of the encoded source [S, C] where the decoder's cross attention of `sequence` finds them,
// instead of what was there. Error{usage} for a model without an encoder, Error{bad_input} for no tokens.
void set_source(const Model& model, State& state, View<const float, 2> encoded, int sequence = 0);

}  // namespace regard
