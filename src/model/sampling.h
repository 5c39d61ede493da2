#pragma once
// Choosing the next token from logits.

#include <cstdint>
#include <vector>

namespace regard {

struct SamplingOptions {
  double temperature = 0;  // 0: greedy, the highest logit, lowest id among equals
  std::int64_t top_k = 0;  // 0: off
  double top_p = 1;        // 1: off
  double min_p = 0;        // 0: off
  std::uint64_t seed = 0;
};

// Order: top-k, top-p, min-p on the distribution at the given temperature, then one draw. The draw of step `step`
// depends on (seed, step) only. Error{usage} for values out of range.
std::int32_t sample(const float* logits, std::int64_t n, const SamplingOptions& options, std::uint64_t step);
void validate(const SamplingOptions& options);

}  // namespace regard
