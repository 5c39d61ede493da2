#pragma once
// What the gradients of gradients.h mean, as reference.h has it: Real = double is the truth, Real = float the plain
// evaluation. Sums ascend plainly.

#include <cstdint>

#include "kernels/activation.h"
#include "tensor/view.h"

namespace regard::reference {

// f'(x).
template <typename Real>
Real slope(Activation f, Real x);

// RMSNorm (centred = false) or LayerNorm; gradients as gradients.h says. dx: [R, C]; dweight, dbias: [C], added to.
template <typename Real>
void norm_backward(bool centred, View<const float, 2> x, const float* weight, float eps, bool weight_plus_one,
                   View<const float, 2> dy, View<Real, 2> dx, Real* dweight, Real* dbias);

}  // namespace regard::reference
