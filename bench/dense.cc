#include "dense.h"

#include <cmath>

#include <fmt/core.h>

#include "case_data.h"
#include "kernels/dequantize.h"
#include "kernels/packed.h"
#include "tensor/buffer.h"

namespace regard::bench {
namespace {

// Largest |y - float64| over some of the outputs.
double error_of(const Matrix& w, View<const float, 2> x, View<const float, 2> y) {
  std::vector<float> row(static_cast<std::size_t>(w.cols));
  double worst = 0;
  for (std::int64_t n = 0; n < w.rows; n += 1 + w.rows / 61) {
    dequantize(w, n, 0, w.cols, row.data());
    for (std::int64_t r = 0; r < x.shape[0]; r += 1 + x.shape[0] / 13) {
      double sum = 0;
      for (std::int64_t k = 0; k < w.cols; ++k) sum += static_cast<double>(row[k]) * x(r, k);
      worst = std::max(worst, std::fabs(sum - y(r, n)));
    }
  }
  return worst;
}

struct Shape {
  DType type;
  std::int64_t rows, outputs, inputs;
  bool packed = false;
};

}  // namespace

void dense_lines(const std::string& filter, const std::function<void(const Line&)>& each) {
  constexpr std::string_view name = "dense product";
  if (name.find(filter) == std::string_view::npos) return;
  for (const Shape& c :
       {Shape{DType::f32, 512, 1536, 576}, Shape{DType::q4_1, 512, 1536, 576}, Shape{DType::f32, 1, 49152, 576},
        Shape{DType::bf16, 1, 49152, 576}, Shape{DType::bf16, 1, 49152, 576, true}, Shape{DType::q4_1, 1, 262144, 576},
        Shape{DType::q4_1, 1, 262144, 576, true}}) {
    const StoredWeights w = stored_weights(c.type, c.outputs, c.inputs);
    Tensor<float, 2> x({c.rows, c.inputs}), y({c.rows, c.outputs});
    Noise(7).fill(x.data(), x.size());
    const bool one = c.rows == 1;
    const double amount = one ? static_cast<double>(w.bytes.size()) / 1e9
                              : 2.0 * static_cast<double>(c.rows * c.outputs) * static_cast<double>(c.inputs) / 1e9;
    Buffer<std::byte> memory(c.packed ? packed_bytes(w.matrix) : 0);
    const PackedMatrix packed = c.packed ? pack(w.matrix, memory.data()) : PackedMatrix();
    const Measured m = measure(
        [&] {
          if (c.packed)
            matmul(packed, x.view(), y.view());
          else
            matmul(w.matrix, x.view(), y.view());
        },
        amount, one ? Yardstick::read_bandwidth : Yardstick::fma_peak);
    each({std::string(name),
          fmt::format("{} x {} x {} {}{}", c.rows, c.outputs, c.inputs, info(c.type).name, c.packed ? " packed" : ""),
          one ? "GB/s" : "GFLOP/s", m.figure, m.peak, m.fraction, error_of(w.matrix, x.view(), y.view())});
  }
}

}  // namespace regard::bench
