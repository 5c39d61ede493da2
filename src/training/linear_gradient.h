#pragma once
// The gradient of a linear layer y = W x + b, by the same dense product: dx = W^T dy, dW = dy^T x.

#include "model/model.h"
#include "tensor/buffer.h"
#include "training/parameters.h"

namespace regard {

// W^T in f32, [K, N]: stored numbers widened.
Tensor<float, 2> turned(const Matrix& w);

// dx: [R, K] (not x itself; null data: not wanted); dy: [R, N]. What W and b get is added to `gradients`, under the
// layer's name; null: the layer is not trained.
void backward(const Linear& linear, View<const float, 2> x, View<const float, 2> dy, View<float, 2> dx,
              Parameters* gradients);

// dW alone: weights [N, K] += dy^T x.
void add_outer(View<const float, 2> dy, View<const float, 2> x, View<float, 2> weights);

// y = m x for an m in memory: m [N, K], x [R, K], y [R, N].
void matmul(View<const float, 2> m, View<const float, 2> x, View<float, 2> y);

}  // namespace regard
