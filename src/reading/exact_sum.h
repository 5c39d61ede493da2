#pragma once
// Sums across rows that come out the same whatever the order: threads, chunks of a prompt and tiles may add in any
// order (law 3). Each weight is rounded to a multiple of 2^-40 and the sum is made in 64-bit integers, where addition
// is associative.
//
// Error: a weight of at least 2^-17 is such a multiple already (f32 has 24 bits), so it is added without any error; a
// smaller one is off by at most 2^-41 = 4.5e-13. A sum of n weights is off by at most n 2^-41. A plain f32 sum is off
// by up to half an ulp of the running sum at every step, n 2^-25 c for a sum c: beyond c = 2^-16 the exact sum is the
// closer one, and a sum of 1 is closer by a factor of 65536. Room: 2^22 weights of 1, more rows than any context has.
//
// A weight that is not a number makes the sum negative, and keeps it so: weights never are.

#include <cmath>
#include <cstdint>
#include <limits>

namespace regard {

inline constexpr int kFixedBits = 40;
inline constexpr std::int64_t kFixedNan = -(std::int64_t{1} << 62);

// x to the nearest multiple of 2^-40, ties to even: adding 1.5 * 2^12 leaves the multiple in the low bits of the
// double.
inline std::int64_t to_fixed(float x) { return std::llrint(std::ldexp(static_cast<double>(x), kFixedBits)); }

inline void add_fixed(std::int64_t& sum, std::int64_t x) {
  if (sum < 0 && x < 0) x -= kFixedNan;  // one mark is enough; two could overflow
  sum += x;
}

// Adds one weight, which may be NaN.
inline void add_weight(std::int64_t& sum, float weight) {
  add_fixed(sum, std::isfinite(weight) ? to_fixed(weight) : kFixedNan);
}

inline double from_fixed(std::int64_t sum) {
  return sum < 0 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(static_cast<double>(sum), -kFixedBits);
}

}  // namespace regard
