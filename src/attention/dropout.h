#pragma once
// Which edges dropout drops: a hash of who reads what, not a stream of random numbers, so that forward and backward,
// any number of threads and any split of the rows over calls drop the same ones.

#include <cmath>
#include <cstdint>

#include "attention/problem.h"
#include "parallel/counter_random.h"

namespace regard {

// The murmur3 finaliser: every bit of the result depends on every bit of x.
constexpr std::uint32_t mix_bits(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// What a lane brings to the hash, 64 bits of (seed, sequence, head, position): splitmix64 chained.
constexpr std::uint64_t dropout_lane(std::uint64_t seed, std::int32_t sequence, std::int32_t head,
                                     std::int64_t position) {
  const std::uint64_t who =
      std::uint64_t{static_cast<std::uint32_t>(sequence)} << 32 | static_cast<std::uint32_t>(head);
  using Random = CounterRandom;
  return Random::mix(Random::mix(Random::mix(seed) ^ who) ^ static_cast<std::uint64_t>(position));
}

// 32 bits of an edge; below the threshold it is dropped. (Keys count modulo 2^32.)
constexpr std::uint32_t dropout_bits(std::uint64_t lane, std::int64_t key) {
  const std::uint32_t first =
      mix_bits(static_cast<std::uint32_t>(key) * 0x9e3779b9u + static_cast<std::uint32_t>(lane));
  return mix_bits(first ^ static_cast<std::uint32_t>(lane >> 32));
}
inline std::uint64_t dropout_threshold(float probability) {
  return static_cast<std::uint64_t>(std::llround(double{probability} * 0x1p32));
}

// What the weight of an edge is multiplied with: 0, or 1 / (1 - probability).
inline float dropout_factor(const Problem& problem, std::int64_t row, std::int32_t head, std::int64_t key) {
  const Dropout& dropout = problem.dropout;
  if (dropout.probability == 0) return 1;
  const QueryRow& query = problem.rows[row];
  const std::uint64_t lane = dropout_lane(dropout.seed, query.sequence, head, query.position);
  return dropout_bits(lane, key) < dropout_threshold(dropout.probability) ? 0.0f : 1.0f / (1.0f - dropout.probability);
}

}  // namespace regard
