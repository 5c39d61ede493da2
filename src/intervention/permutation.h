#pragma once
// Random orders that depend on nothing but their names, so that a permuted pattern is the same in any pass.

#include <cstdint>
#include <utility>
#include <vector>

namespace regard {

// SplitMix64's mixing function (Steele, Lea & Flood 2014).
inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// An order of [0, n): Fisher-Yates, the same for the same seed, layer, head and row on every machine.
inline std::vector<std::int64_t> permutation(std::uint64_t seed, std::int64_t layer, std::int64_t head,
                                             std::int64_t row, std::int64_t n) {
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
  std::uint64_t state = mix(seed + kStep);
  for (const std::int64_t part : {layer, head, row}) state = mix(state + kStep + static_cast<std::uint64_t>(part));
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) order[i] = i;
  for (std::int64_t i = n - 1; i > 0; --i)
    std::swap(order[i], order[mix(state += kStep) % static_cast<std::uint64_t>(i + 1)]);
  return order;
}

}  // namespace regard
