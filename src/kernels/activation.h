#pragma once
// Elementwise functions: one polynomial each, the same operations on every target, tails included.

#include <cstdint>

#include "tensor/view.h"

namespace regard {

// clamped_swiglu (gpt-oss) is gated only: with g = min(gate, 7), u = clamp(up, -7, 7): (u + 1) g sigmoid(1.702 g).
enum class Activation { silu, gelu_erf, gelu_tanh, relu, clamped_swiglu };

// y = f(x) elementwise, [R, F], inner strides 1; x and y may be the same memory. Error{bad_input} for clamped_swiglu.
void activate(Activation f, View<const float, 2> x, View<float, 2> y);
// y = f(gate) * up (SwiGLU / GeGLU); y may be gate or up.
void activate_gated(Activation f, View<const float, 2> gate, View<const float, 2> up, View<float, 2> y);
// y += x, and y += b for each row.
void add(View<const float, 2> x, View<float, 2> y);
void add_bias(const float* bias, View<float, 2> y);
// y *= factor.
void scale(float factor, View<float, 2> y);

// Elementwise over n numbers, x and y may be the same: for tests and for readers.
void exp(const float* x, float* y, std::int64_t n);
void log(const float* x, float* y, std::int64_t n);
void tanh(const float* x, float* y, std::int64_t n);
void erf(const float* x, float* y, std::int64_t n);

}  // namespace regard
