#pragma once
// Random numbers by counting: number i of a stream is a function of the stream and i alone, so nothing depends on what
// was drawn before, on threads, or on where a run was stopped. The mixer is splitmix64's (Steele et al. 2014).

#include <cmath>
#include <cstdint>
#include <numbers>

namespace regard {

// What random numbers are drawn for: no two uses share a stream, whatever their keys.
enum class RandomUse : std::uint64_t {
  lesson = 1,  // what the lesson measures
  weights,     // (seed, tensor): the first weights of a training
  sentences,   // (kind and language, number, attempt): a generated sentence
  hidden,      // (seed, number): which word of it cannot be read
  pieces,      // (seed, step): where the pieces of a text begin
  dropout,     // (seed): by step; (seed of a step): by layer
};

class CounterRandom {
 public:
  // A stream of its own for every use and key.
  explicit CounterRandom(RandomUse use, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0)
      : key_(mix(mix(mix(mix(static_cast<std::uint64_t>(use)) ^ a) ^ b) ^ c)) {}

  static constexpr std::uint64_t mix(std::uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t at(std::uint64_t i) const { return mix(key_ ^ (i * 0xd1342543de82ef95u)); }
  // In [0, 1), 53 bits.
  double uniform_at(std::uint64_t i) const { return static_cast<double>(at(i) >> 11) * 0x1p-53; }
  // Of the normal distribution (Box and Muller 1958).
  double normal_at(std::uint64_t i) const {
    const double radius = std::sqrt(-2 * std::log(1 - uniform_at(2 * i)));
    return radius * std::cos(2 * std::numbers::pi * uniform_at(2 * i + 1));
  }

  // One after another.
  std::uint64_t next() { return at(count_++); }
  // In [0, n); n small, so that no value is favoured by more than n / 2^64.
  std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t key_, count_ = 0;
};

}  // namespace regard
