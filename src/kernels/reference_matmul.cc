#include "kernels/reference_matmul.h"

#include <vector>

#include "kernels/dequantize.h"

namespace regard::reference {

template <typename Real>
void matmul(const Matrix& w, View<const float, 2> x, View<Real, 2> y) {
  std::vector<float> weights(static_cast<std::size_t>(w.cols));
  for (std::int64_t n = 0; n < w.rows; ++n) {
    dequantize(w, n, 0, w.cols, weights.data());
    for (std::int64_t r = 0; r < x.shape[0]; ++r) {
      Real sum = 0;
      for (std::int64_t k = 0; k < w.cols; ++k)
        sum += static_cast<Real>(weights[static_cast<std::size_t>(k)]) * static_cast<Real>(x(r, k));
      y(r, n) = sum;
    }
  }
}

template void matmul<double>(const Matrix&, View<const float, 2>, View<double, 2>);
template void matmul<float>(const Matrix&, View<const float, 2>, View<float, 2>);

}  // namespace regard::reference
