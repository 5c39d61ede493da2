#pragma once
// Rotary positions (Su et al. 2021, RoFormer) and the ways of stretching them.

#include <cstdint>
#include <vector>

#include "tensor/view.h"

namespace regard {

enum class RotaryPairs { half, interleaved };  // (i, i + dim/2) or (2i, 2i + 1)
enum class RotaryScaling { none, linear, dynamic_ntk, llama3, yarn, longrope };

// All that decides the angles. Formulas as in transformers/modeling_rope_utils.py; fields not used by a scaling are ignored.
struct RotaryConfig {
  std::int64_t dim = 0;  // channels rotated (<= head channels; the rest pass through); even
  double base = 10000;
  RotaryPairs pairs = RotaryPairs::half;
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;
  std::int64_t original_context = 0;  // L0
  std::int64_t context = 0;           // max_position_embeddings
  double low_frequency_factor = 1, high_frequency_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;                        // yarn
  bool truncate = true;                                        // yarn: floor/ceil of the correction range
  double attention_factor = 0;                                 // yarn, longrope: 0 = by the formula
  double mscale = 0, mscale_all_dim = 0;                       // yarn
  std::vector<double> short_factors, long_factors;             // longrope, dim/2 each
  std::vector<double> frequency_divisors;                      // dim/2 or empty: GGUF rope_freqs.weight
};

// The angle per position of each pair, in double, and the factor on cos and sin. `length` matters to dynamic_ntk and
// longrope only (the longest sequence so far).
struct RotaryFrequencies {
  std::vector<double> inverse;  // [dim/2]
  double attention_factor = 1;
};
RotaryFrequencies rotary_frequencies(const RotaryConfig& config, std::int64_t length);

// cos and sin for positions [0, n), made in double, rounded once to f32; grows on demand (amortised doubling).
// Not for use from several threads at once.
class RotaryTable {
 public:
  RotaryTable() = default;
  RotaryTable(const RotaryConfig& config, std::int64_t length);
  // x: [R, H, D], row r is at positions[r] (>= 0); the first `dim` channels of every head are rotated in place.
  // a' = a cos - b sin, b' = b cos + a sin; each as one product and one FMA: fma(a, cos, -(b sin)), fma(b, cos, a sin).
  void rotate(View<float, 3> x, const std::int64_t* positions);
  const RotaryConfig& config() const { return config_; }

 private:
  RotaryConfig config_;
  RotaryFrequencies frequencies_;
  std::vector<float> cos_, sin_;  // [n, dim/2]
};

}  // namespace regard
