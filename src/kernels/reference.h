#pragma once
// What every kernel of this folder means: the formula, once, written to be read, sums in plain ascending order.
//
// Each function exists for Real = double, which is the truth that law 1 measures against, and for Real = float, which
// is the plain evaluation whose error, doubled, a fast kernel may not exceed. Slow on purpose; nothing outside tests
// and `bench` calls it. Inputs are the f32 numbers a kernel gets, so no error comes from them.

#include <cstdint>
#include <span>

#include "kernels/activation.h"
#include "kernels/rotary.h"
#include "tensor/view.h"

namespace regard::reference {

// Activations of one number. silu: Elfwing et al. 2018; gelu: Hendrycks and Gimpel 2016.
template <typename Real>
Real activation(Activation f, Real x);

// y = f(x), or f(x) * up where up is not empty                                                              all [R, F]
template <typename Real>
void activate(Activation f, View<const float, 2> x, View<const float, 2> up, View<Real, 2> y);

// y[r, c] = x[r, c] / sqrt(mean_c x^2 + eps) * w[c]         Zhang and Sennrich 2019, equation 4                [R, C]
template <typename Real>
void rms_norm(View<const float, 2> x, const float* weight, float eps, bool weight_plus_one, View<Real, 2> y);

// y[r, c] = (x[r, c] - mean) / sqrt(var + eps) * w[c] + b[c]    Ba et al. 2016, equation 4; bias may be null    [R, C]
template <typename Real>
void layer_norm(View<const float, 2> x, const float* weight, const float* bias, float eps, View<Real, 2> y);

// y = x with the first `dim` channels of every head turned by positions[r] * inverse        Su et al. 2021    [R, H, D]
template <typename Real>
void rotate(const RotaryConfig& config, std::int64_t length, View<const float, 3> x, const std::int64_t* positions,
            View<Real, 3> y);

// log sum_i exp(x[i]), p[i] = exp(x[i]) / sum_j exp(x[j]) and its logarithm, with the largest x taken off first.
template <typename Real>
Real log_sum_exp(std::span<const float> x);
template <typename Real>
void softmax(std::span<const float> x, std::span<Real> p);
template <typename Real>
void log_softmax(std::span<const float> x, std::span<Real> lp);

}  // namespace regard::reference
