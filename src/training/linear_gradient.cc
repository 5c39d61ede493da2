#include "training/linear_gradient.h"

#include "kernels/activation.h"
#include "kernels/dequantize.h"
#include "kernels/gradients.h"
#include "parallel/parallel_for.h"

namespace regard {

Tensor<float, 2> turned(const Matrix& w) {
  Tensor<float, 2> t({w.cols, w.rows});
  constexpr std::int64_t kRows = 16;  // of a cache line of the result
  parallel_for((w.rows + kRows - 1) / kRows, [&](std::int64_t task, int) {
    const std::int64_t begin = task * kRows, n = std::min(kRows, w.rows - begin);
    std::vector<float> rows(static_cast<std::size_t>(n * w.cols));
    for (std::int64_t i = 0; i < n; ++i) dequantize(w, begin + i, 0, w.cols, &rows[i * w.cols]);
    for (std::int64_t k = 0; k < w.cols; ++k)
      for (std::int64_t i = 0; i < n; ++i) t.data()[k * w.rows + begin + i] = rows[i * w.cols + k];
  });
  return t;
}

void matmul(View<const float, 2> m, View<const float, 2> x, View<float, 2> y) {
  matmul(Matrix{DType::f32, m.shape[0], m.shape[1], reinterpret_cast<const std::byte*>(m.data),
                m.stride[0] * static_cast<std::int64_t>(sizeof(float))},
         x, y);
}

void add_outer(View<const float, 2> dy, View<const float, 2> x, View<float, 2> weights) {
  const std::int64_t R = dy.shape[0], N = dy.shape[1], K = x.shape[1];
  Tensor<float, 2> dy_turned({N, R}), x_turned({K, R}), product({N, K});
  turn(dy, dy_turned.view());
  turn(x, x_turned.view());
  matmul(x_turned.view(), dy_turned.view(), product.view());
  add(product.view(), weights);
}

void backward(const Linear& linear, View<const float, 2> x, View<const float, 2> dy, View<float, 2> dx,
              Parameters* gradients) {
  if (dx.data != nullptr) matmul(turned(linear.weight).view(), dy, dx);
  if (gradients == nullptr) return;
  add_outer(dy, x, gradients->at(linear.name + ".weight"));
  if (!linear.bias.empty()) add_column_sums(dy, gradients->at(linear.name + ".bias").data);
}

}  // namespace regard
