#pragma once
// Normalisation over channels. Sums in the canonical channel order (channels-inl.h): blocks of 4096 channels in order,
// in each 16 partial sums by index mod 16, each a chain ascending, then one fixed tree.

#include "tensor/view.h"

namespace regard {

// y[r, c] = x[r, c] / sqrt(mean_c x^2 + eps) * w[c]          x, y: [R, C] (may be the same memory); inner strides 1.
// weight_plus_one: multiply by (1 + w[c]) (Gemma checkpoints that store w without the one). Zhang and Sennrich 2019.
// Error{bad_input}, here and below: shapes differ, channels of a row not side by side, no weight.
void rms_norm(View<const float, 2> x, const float* weight, float eps, bool weight_plus_one, View<float, 2> y);

// y[r, c] = (x[r, c] - mean) / sqrt(var + eps) * w[c] + b[c]; var is the biased one. bias may be null.
// Ba et al. 2016.
void layer_norm(View<const float, 2> x, const float* weight, const float* bias, float eps, View<float, 2> y);

}  // namespace regard
