#include "lesson/normal.h"

#include <cmath>
#include <numbers>

#include "parallel/parallel_for.h"

namespace regard {
namespace {

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// In (0, 1].
double uniform(std::uint64_t seed, std::uint64_t counter) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  const std::uint64_t bits = mixed(mixed(seed + kGolden) + (counter + 1) * kGolden);
  return (static_cast<double>(bits >> 11) + 1) * 0x1p-53;
}

}  // namespace

double normal(std::uint64_t seed, std::uint64_t counter) {
  const double radius = std::sqrt(-2 * std::log(uniform(seed, 2 * counter)));
  return radius * std::cos(2 * std::numbers::pi * uniform(seed, 2 * counter + 1));
}

Tensor<float, 2> normal_rows(std::int64_t rows, std::int64_t channels, std::uint64_t seed) {
  Tensor<float, 2> result({rows, channels});
  parallel_for(rows, [&](std::int64_t r, int) {
    for (std::int64_t c = 0; c < channels; ++c)
      result(r, c) = static_cast<float>(normal(seed, static_cast<std::uint64_t>(r * channels + c)));
  });
  return result;
}

}  // namespace regard
