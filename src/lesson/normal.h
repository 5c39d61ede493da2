#pragma once
// Normally distributed numbers by counter: number n of a seed is always the same, whoever asks and in whatever order.

#include <cstdint>

#include "tensor/buffer.h"

namespace regard {

// Mean 0, variance 1: SplitMix64 (Steele, Lea, Flood 2014) of seed and counter, then Box and Muller (1958).
double normal(std::uint64_t seed, std::uint64_t counter);

// [rows, channels], number r * channels + c of the seed.
Tensor<float, 2> normal_rows(std::int64_t rows, std::int64_t channels, std::uint64_t seed);

}  // namespace regard
