#pragma once
// Gradients of the kernels that a layer is made of. Names: for y = f(x), `dy` is the gradient of the loss by y, `dx`
// what follows for x. What a parameter gets is added to what is there, since several layers or passes may share it.
//
// Orders of sums (law 3): over channels the canonical one (channels-inl.h); over rows, for a parameter, blocks of 256
// rows anchored at row 0, in each one chain ascending from +0, the blocks added in order: no bit depends on threads.

#include <cstdint>
#include <span>

#include "kernels/activation.h"
#include "tensor/view.h"

namespace regard {

// With n = x / size, size = sqrt(mean_c x^2 + eps), g = w dy:   dx = (g - n mean_c(g n)) / size,   dweight += dy n.
// x, dy, dx: [R, C], inner strides 1; dx and dy may be the same memory. dweight: [C], may be null. Errors: as rms_norm.
void rms_norm_backward(View<const float, 2> x, const float* weight, float eps, bool weight_plus_one,
                       View<const float, 2> dy, View<float, 2> dx, float* dweight);

// With n = (x - mean) / deviation, g = w dy:   dx = (g - mean_c(g) - n mean_c(g n)) / deviation, dweight += dy n,
// dbias += dy. dweight and dbias: [C], may be null.
void layer_norm_backward(View<const float, 2> x, const float* weight, float eps, View<const float, 2> dy,
                         View<float, 2> dx, float* dweight, float* dbias);

// y = f(x): dx = dy f'(x). All [R, F]; dx and dy may be the same memory. relu'(0) = 0. Error{bad_input} for
// clamped_swiglu, here and below.
void activate_backward(Activation f, View<const float, 2> x, View<const float, 2> dy, View<float, 2> dx);
// y = f(gate) up: dgate = dy up f'(gate), dup = dy f(gate). dgate may be gate, dup may be dy or up.
void activate_gated_backward(Activation f, View<const float, 2> gate, View<const float, 2> up, View<const float, 2> dy,
                             View<float, 2> dgate, View<float, 2> dup);

// sums[c] += sum_r x[r, c]: what a bias gets of dy.
void add_column_sums(View<const float, 2> x, float* sums);

// losses[r] = -log p(targets[r]) where p = softmax(logits[r]); dlogits = weight (p - [c == target]). A target of -1
// asks nothing of its row: loss 0, gradient 0. logits, dlogits: [R, V], may be the same memory.
void cross_entropy(View<const float, 2> logits, std::span<const std::int32_t> targets, float weight,
                   std::span<float> losses, View<float, 2> dlogits);

// y = x turned: x [R, C], y [C, R].
void turn(View<const float, 2> x, View<float, 2> y);

}  // namespace regard
