#include "kernels/reference_gradients.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace regard::reference {

template <typename Real>
Real slope(Activation f, Real x) {
  const auto sigmoid = [](Real t) { return 1 / (1 + std::exp(-t)); };
  switch (f) {
    case Activation::silu:
      return sigmoid(x) * (1 + x * sigmoid(-x));
    case Activation::gelu_erf:
      return (1 + std::erf(x / std::numbers::sqrt2_v<Real>)) / 2 +
             x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>);
    case Activation::gelu_tanh: {
      const Real a = std::sqrt(2 / std::numbers::pi_v<Real>), b = Real(0.044715);
      const Real t = std::tanh(a * (x + b * x * x * x));
      return (1 + t) / 2 + x / 2 * (1 - t * t) * a * (1 + 3 * b * x * x);
    }
    case Activation::relu:
      return x > 0 ? 1 : 0;
    case Activation::clamped_swiglu:
      break;
  }
  return std::numeric_limits<Real>::quiet_NaN();
}

template <typename Real>
void norm_backward(bool centred, View<const float, 2> x, const float* weight, float eps, bool weight_plus_one,
                   View<const float, 2> dy, View<Real, 2> dx, Real* dweight, Real* dbias) {
  const auto [rows, channels] = x.shape;
  std::vector<Real> n(static_cast<std::size_t>(channels)), g(n);
  for (std::int64_t r = 0; r < rows; ++r) {
    Real mean = 0, squares = 0;
    for (std::int64_t c = 0; centred && c < channels; ++c) mean += x(r, c);
    mean /= channels;
    for (std::int64_t c = 0; c < channels; ++c) squares += (x(r, c) - mean) * (x(r, c) - mean);
    const Real size = std::sqrt(squares / channels + eps);
    Real mean_g = 0, mean_gn = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      n[c] = (x(r, c) - mean) / size;
      g[c] = (weight_plus_one ? 1 + Real(weight[c]) : weight[c]) * dy(r, c);
      mean_g += g[c] / channels;
      mean_gn += g[c] * n[c] / channels;
      dweight[c] += dy(r, c) * n[c];
      dbias[c] += dy(r, c);
    }
    for (std::int64_t c = 0; c < channels; ++c) dx(r, c) = (g[c] - (centred ? mean_g : 0) - n[c] * mean_gn) / size;
  }
}

#define REGARD_REFERENCE(Real)                                                                             \
  template Real slope(Activation, Real);                                                                   \
  template void norm_backward(bool, View<const float, 2>, const float*, float, bool, View<const float, 2>, \
                              View<Real, 2>, Real*, Real*)

REGARD_REFERENCE(float);
REGARD_REFERENCE(double);

}  // namespace regard::reference
