#pragma once
// Numbers and weights of no particular meaning, the same at every run.

#include <cstdint>
#include <vector>

#include "kernels/matmul.h"
#include "tensor/buffer.h"
#include "tensor/half.h"

namespace regard::bench {

class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform in [-sqrt 3, sqrt 3): variance 1.
  float next() { return (static_cast<float>(bits() >> 40) * 0x1p-23f - 1.0f) * 1.7320508f; }
  void fill(float* to, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = next();
  }

 private:
  std::uint64_t state_;
};

// Weights of one stored type, owned.
struct StoredWeights {
  Buffer<std::byte> bytes;
  Matrix matrix;
};

inline StoredWeights stored_weights(DType type, std::int64_t rows, std::int64_t cols) {
  const std::int64_t stride = row_bytes(type, cols);
  StoredWeights w{Buffer<std::byte>(rows * stride), {}};
  Noise noise(5);
  std::byte* at = w.bytes.data();
  const auto put_half = [](std::byte* to, std::uint16_t half) { std::memcpy(to, &half, sizeof half); };
  if (type == DType::f32 || type == DType::bf16) {
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const float value = noise.next();
      if (type == DType::f32)
        std::memcpy(at + 4 * i, &value, sizeof value);
      else
        put_half(at + 2 * i, bf16_from_f32(value));
    }
  } else {  // Q4_1: blocks of scale, minimum, 16 bytes of quants
    for (std::int64_t block = 0; block < rows * cols / 32; ++block, at += 20) {
      put_half(at, f16_from_f32(0.2f));
      put_half(at + 2, f16_from_f32(-1.5f));
      for (int i = 0; i < 2; ++i) {
        const std::uint64_t quants = noise.bits();
        std::memcpy(at + 4 + 8 * i, &quants, sizeof quants);
      }
    }
  }
  w.matrix = {type, rows, cols, w.bytes.data(), stride};
  return w;
}

}  // namespace regard::bench
