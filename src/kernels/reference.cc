#include "kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace regard::reference {

template <typename Real>
Real activation(Activation f, Real x) {
  switch (f) {
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu_erf:
      return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<Real>));
    case Activation::gelu_tanh: {
      const Real u = std::sqrt(2 / std::numbers::pi_v<Real>) * (x + Real(0.044715) * x * x * x);
      return x / 2 * (1 + std::tanh(u));
    }
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::clamped_swiglu:  // of the gate: (up + 1) times this
      x = x > 7 ? 7 : x;
      return x / (1 + std::exp(Real(-1.702) * x));
  }
  return std::numeric_limits<Real>::quiet_NaN();
}

template <typename Real>
void activate(Activation f, View<const float, 2> x, View<const float, 2> up, View<Real, 2> y) {
  for (std::int64_t r = 0; r < x.shape[0]; ++r) {
    for (std::int64_t c = 0; c < x.shape[1]; ++c) {
      y(r, c) = activation(f, Real(x(r, c)));
      if (up.data == nullptr) continue;
      const Real factor = up(r, c);
      y(r, c) *= f == Activation::clamped_swiglu ? std::clamp(factor, Real(-7), Real(7)) + 1 : factor;
    }
  }
}

template <typename Real>
void rms_norm(View<const float, 2> x, const float* weight, float eps, bool weight_plus_one, View<Real, 2> y) {
  const auto [rows, channels] = x.shape;
  for (std::int64_t r = 0; r < rows; ++r) {
    Real squares = 0;
    for (std::int64_t c = 0; c < channels; ++c) squares += Real(x(r, c)) * x(r, c);
    const Real size = std::sqrt(squares / channels + eps);
    for (std::int64_t c = 0; c < channels; ++c)
      y(r, c) = x(r, c) / size * (weight_plus_one ? 1 + Real(weight[c]) : weight[c]);
  }
}

template <typename Real>
void layer_norm(View<const float, 2> x, const float* weight, const float* bias, float eps, View<Real, 2> y) {
  const auto [rows, channels] = x.shape;
  for (std::int64_t r = 0; r < rows; ++r) {
    Real sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += x(r, c);
    const Real mean = sum / channels;
    Real squares = 0;
    for (std::int64_t c = 0; c < channels; ++c) squares += (x(r, c) - mean) * (x(r, c) - mean);
    const Real deviation = std::sqrt(squares / channels + eps);
    for (std::int64_t c = 0; c < channels; ++c)
      y(r, c) = (x(r, c) - mean) / deviation * weight[c] + (bias == nullptr ? 0 : bias[c]);
  }
}

template <typename Real>
void rotate(const RotaryConfig& config, std::int64_t length, View<const float, 3> x, const std::int64_t* positions,
            View<Real, 3> y) {
  const RotaryFrequencies frequencies = rotary_frequencies(config, length);
  const auto [rows, heads, channels] = x.shape;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t d = config.dim; d < channels; ++d) y(r, h, d) = x(r, h, d);
      for (std::int64_t i = 0; i < config.dim / 2; ++i) {
        // The angle is made in double whatever Real is: in f32 it would be wrong by radians at position 10^6.
        const double angle = static_cast<double>(positions[r]) * frequencies.inverse[i];
        const Real cosine = static_cast<Real>(std::cos(angle) * frequencies.attention_factor);
        const Real sine = static_cast<Real>(std::sin(angle) * frequencies.attention_factor);
        const bool half = config.pairs == RotaryPairs::half;
        const std::int64_t first = half ? i : 2 * i;
        const std::int64_t second = half ? i + config.dim / 2 : 2 * i + 1;
        y(r, h, first) = x(r, h, first) * cosine - x(r, h, second) * sine;
        y(r, h, second) = x(r, h, second) * cosine + x(r, h, first) * sine;
      }
    }
  }
}

namespace {

// The largest x, and the sum of exp(x - largest). NaN where there is a NaN; nothing is above -inf: {-inf, 0}.
template <typename Real>
struct Normaliser {
  Real largest = -std::numeric_limits<Real>::infinity();
  Real sum = 0;

  explicit Normaliser(std::span<const float> x) {
    for (float v : x) {
      if (std::isnan(v)) largest = sum = std::numeric_limits<Real>::quiet_NaN();
      if (std::isnan(v)) return;
      largest = std::max(largest, Real(v));
    }
    if (std::isinf(largest) && largest < 0) return;
    for (float v : x) sum += std::exp(v - largest);
  }
};

}  // namespace

template <typename Real>
Real log_sum_exp(std::span<const float> x) {
  const Normaliser<Real> n(x);
  if (std::isinf(n.largest)) return n.largest;
  return n.largest + std::log(n.sum);
}

template <typename Real>
void softmax(std::span<const float> x, std::span<Real> p) {
  const Normaliser<Real> n(x);
  for (std::size_t i = 0; i < x.size(); ++i) p[i] = n.sum == 0 ? 0 : std::exp(x[i] - n.largest) / n.sum;
}

template <typename Real>
void log_softmax(std::span<const float> x, std::span<Real> lp) {
  const Normaliser<Real> n(x);
  for (std::size_t i = 0; i < x.size(); ++i) lp[i] = n.sum == 0 ? n.largest : x[i] - n.largest - std::log(n.sum);
}

#define REGARD_REFERENCE(Real)                                                                                       \
  template Real activation(Activation, Real);                                                                        \
  template void activate(Activation, View<const float, 2>, View<const float, 2>, View<Real, 2>);                     \
  template void rms_norm(View<const float, 2>, const float*, float, bool, View<Real, 2>);                            \
  template void layer_norm(View<const float, 2>, const float*, const float*, float, View<Real, 2>);                  \
  template void rotate(const RotaryConfig&, std::int64_t, View<const float, 3>, const std::int64_t*, View<Real, 3>); \
  template Real log_sum_exp<Real>(std::span<const float>);                                                           \
  template void softmax(std::span<const float>, std::span<Real>);                                                    \
  template void log_softmax(std::span<const float>, std::span<Real>)

REGARD_REFERENCE(float);
REGARD_REFERENCE(double);

}  // namespace regard::reference
