#pragma once
// Random weights in any stored type, of a chosen size, for tests that need a tensor and do not care which.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "tensor/dtype.h"
#include "tensor/half.h"

namespace regard::testing {

// Bytes of `elements` (whole blocks) of `type`. Plain types: normal numbers of standard deviation `scale`. Block types:
// random bits with scales (and minima) of about the size that gives weights of that magnitude, all finite.
inline std::string random_weights(DType type, std::int64_t elements, std::uint32_t seed, float scale = 0.2f) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::string out(static_cast<std::size_t>(row_bytes(type, elements)), '\0');
  const auto put16 = [&](std::size_t at, std::uint16_t v) { std::memcpy(&out[at], &v, 2); };
  switch (type) {
    case DType::f32:
      for (std::size_t i = 0; i < out.size(); i += 4) {
        const float v = normal(bits);
        std::memcpy(&out[i], &v, 4);
      }
      return out;
    case DType::f64:
      for (std::size_t i = 0; i < out.size(); i += 8) {
        const double v = double{normal(bits)} * (1 + 0x1p-30);
        std::memcpy(&out[i], &v, 8);
      }
      return out;
    case DType::f16:
      for (std::size_t i = 0; i < out.size(); i += 2) put16(i, f16_from_f32(normal(bits)));
      return out;
    case DType::bf16:
      for (std::size_t i = 0; i < out.size(); i += 2) put16(i, bf16_from_f32(normal(bits)));
      return out;
    default:
      break;
  }
  for (char& byte : out) byte = static_cast<char>(bits());
  // Where a block keeps its f16 scale and minimum (ggml-common.h), and how large scale x integer gets in that type.
  struct Place {
    int d, m;
    float range;
  };
  const Place place = [&]() -> Place {
    switch (type) {
      case DType::q4_0:
        return {0, -1, 5};
      case DType::q4_1:
        return {0, 2, 5};
      case DType::q5_0:
        return {0, -1, 9};
      case DType::q5_1:
        return {0, 2, 9};
      case DType::q8_0:
        return {0, -1, 74};
      case DType::q2_k:
        return {80, 82, 12};
      case DType::q3_k:
        return {108, -1, 48};
      case DType::q4_k:
        return {0, 2, 240};
      case DType::q5_k:
        return {0, 2, 480};
      case DType::q6_k:
        return {208, -1, 1300};
      case DType::iq4_xs:
        return {0, -1, 1200};
      default:
        return {0, -1, 70};  // iq4_nl
    }
  }();
  std::uniform_real_distribution<float> around(0.5f, 1.5f);
  const std::size_t block = static_cast<std::size_t>(info(type).block_bytes);
  if (type == DType::mxfp4) {  // the exponent of a power of two, of numbers of about 6
    for (std::size_t at = 0; at < out.size(); at += block)
      out[at] = static_cast<char>(128 + std::ilogb(scale / 6) + static_cast<int>(bits() % 2));
    return out;
  }
  for (std::size_t at = 0; at < out.size(); at += block) {
    const float d = scale / place.range * around(bits) * (bits() % 2 ? 1.0f : -1.0f);
    put16(at + place.d, f16_from_f32(d));
    if (place.m < 0) continue;
    // q4_1 and q5_1 add the minimum: centre the block. The k types take it away times an integer of its own.
    const float m = type == DType::q4_1 ? -7.5f * d : type == DType::q5_1 ? -15.5f * d : d;
    put16(at + place.m, f16_from_f32(m));
  }
  return out;
}

}  // namespace regard::testing
