#pragma once
#include <cstdint>

#include "tensor/buffer.h"

namespace regard {

// [rows, channels] of the normal distribution: number r * channels + c of the seed (parallel/counter_random.h).
Tensor<float, 2> normal_rows(std::int64_t rows, std::int64_t channels, std::uint64_t seed);

}  // namespace regard
