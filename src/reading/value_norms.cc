#include "reading/value_norms.h"

#include <algorithm>
#include <cmath>

#include "kernels/dequantize.h"
#include "parallel/parallel_for.h"
#include "tensor/buffer.h"

namespace regard {

// W_O^h W_O^h^T as [E, E], from the stored weights [C, H * E] row by row.
const std::vector<double>& ValueNorms::products(std::int64_t layer, std::int64_t head) {
  const ModelConfig& c = model_.config();
  const std::int64_t H = c.heads, E = c.value_dim;
  products_.resize(static_cast<std::size_t>(c.layers * H));
  std::vector<double>& wanted = products_[layer * H + head];
  if (!wanted.empty()) return wanted;
  // A stored row holds all heads: make them all.
  const Matrix& w = model_.layers()[layer].o.weight;
  Tensor<float, 2> rows({w.rows, w.cols});
  parallel_for(w.rows, [&](std::int64_t r, int) { dequantize(w, r, 0, w.cols, &rows(r, 0)); });
  parallel_for(H, [&](std::int64_t h, int) {
    std::vector<double>& product = products_[layer * H + h];
    product.assign(static_cast<std::size_t>(E * E), 0.0);
    for (std::int64_t r = 0; r < w.rows; ++r) {
      const float* row = &rows(r, h * E);
      for (std::int64_t a = 0; a < E; ++a)
        for (std::int64_t b = 0; b < E; ++b) product[a * E + b] += static_cast<double>(row[a]) * row[b];
    }
  });
  return wanted;
}

void ValueNorms::add(std::int64_t layer, std::span<const std::int64_t> heads, View<const float, 3> v,
                     std::span<const std::int32_t> slot, View<float, 2> out) {
  const ModelConfig& c = model_.config();
  const std::int64_t E = c.value_dim, group = c.heads / c.kv_heads;
  for (std::int64_t head : heads) products(layer, head);
  parallel_for(v.shape[0], [&](std::int64_t r, int) {
    if (slot[r] < 0) return;
    std::vector<double> turned(static_cast<std::size_t>(E));
    for (std::int64_t h = 0; h < std::ssize(heads); ++h) {
      const std::vector<double>& product = products_[layer * c.heads + heads[h]];
      const float* value = &v(r, heads[h] / group, 0);
      std::fill(turned.begin(), turned.end(), 0.0);
      for (std::int64_t a = 0; a < E; ++a)
        for (std::int64_t b = 0; b < E; ++b) turned[b] += value[a] * product[a * E + b];
      double squares = 0;
      for (std::int64_t b = 0; b < E; ++b) squares += turned[b] * value[b];
      out(h, slot[r]) = static_cast<float>(std::sqrt(std::max(squares, 0.0)));
    }
  });
}

}  // namespace regard
