#pragma once
// The canonical order of a sum over channels (kernels/channels-inl.h), one number at a time: blocks of 4096 added in
// order, in each 16 partial sums by index mod 16, folded in halves.

#include <algorithm>
#include <cstdint>

namespace regard::testing {

// add(s, c) -> s with channel c added to it, for every channel in [0, n).
template <typename Add>
float canonical_sum(std::int64_t n, Add&& add) {
  float sum = 0;
  for (std::int64_t begin = 0; begin < n; begin += 4096) {
    float s[16] = {};
    for (std::int64_t c = begin; c < std::min(n, begin + 4096); ++c) s[c % 16] = add(s[c % 16], c);
    for (int half : {8, 4, 2, 1}) {
      for (int j = 0; j < half; ++j) s[j] = s[j] + s[j + half];
    }
    sum = begin == 0 ? s[0] : sum + s[0];
  }
  return sum;
}

}  // namespace regard::testing
