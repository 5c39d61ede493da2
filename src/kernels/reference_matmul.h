#pragma once
// The dense product as a textbook has it. Real = double is the truth that the fast one is measured against, Real =
// float the plain evaluation whose error, doubled, the fast one may not exceed.

#include "kernels/matmul.h"

namespace regard::reference {

// y[r, n] = sum over k of W[n, k] x[r, k], k ascending, W widened as in dequantize.h      x: [R, K], y: [R, N]
template <typename Real>
void matmul(const Matrix& w, View<const float, 2> x, View<Real, 2> y);

}  // namespace regard::reference
