#pragma once
// Rotary positions (Su et al. 2021, RoFormer) and the ways of stretching them.

#include <cstdint>
#include <vector>

#include "tensor/view.h"

namespace regard {

enum class RotaryPairs { half, interleaved };  // (i, i + dim/2) or (2i, 2i + 1)
enum class RotaryScaling { none, linear, dynamic_ntk, llama3, yarn, longrope };

// All that decides the angles. Formulas as in transformers/modeling_rope_utils.py; fields not used by a scaling are
// ignored.
//   linear       Chen et al. 2023, arXiv 2306.15595      factor
//   dynamic_ntk  bloc97, emozilla 2023                   factor, context; the length
//   llama3       Llama 3.1                               factor, original_context, low_ and high_frequency_factor
//   yarn         Peng et al. 2023, arXiv 2309.00071      factor, original_context (0: context), beta_*, truncate,
//                                                        attention_factor or mscale and mscale_all_dim
//   longrope     Ding et al. 2024, arXiv 2402.13753      short_ and long_factors, original_context, attention_factor or
//                                                        context / original_context (context 0: factor); the length
struct RotaryConfig {
  std::int64_t dim = 0;  // channels rotated (<= head channels; the rest pass through); even
  double base = 10000;
  RotaryPairs pairs = RotaryPairs::half;
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;
  std::int64_t original_context = 0;                           // L0
  std::int64_t context = 0;                                    // max_position_embeddings
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
// Error{bad_input}, naming the field, for a configuration that has no meaning (odd dim, base or factor not
// positive...).
RotaryFrequencies rotary_frequencies(const RotaryConfig& config, std::int64_t length);

// cos and sin by position, each made in double from position * inverse and rounded once to f32. Positions below
// kTableRows are kept in a table that grows on demand (amortised doubling); later ones are made when they are met,
// which gives the same bits and bounds the memory. Not for use from several threads at once.
class RotaryTable {
 public:
  RotaryTable() = default;
  RotaryTable(const RotaryConfig& config, std::int64_t length);
  // x: [R, H, D], row r is at positions[r] (>= 0); the first `dim` channels of every head are rotated in place.
  // a' = a cos - b sin, b' = b cos + a sin; each as one product and one FMA: fma(a, cos, -(b sin)), fma(b, cos, a sin).
  // Error{bad_input}: fewer than dim channels, channels not side by side, a negative position.
  void rotate(View<float, 3> x, const std::int64_t* positions) { turn(x, positions, false); }
  // What rotate() makes of a gradient on its way back: the same with -sin. (Its inverse where no scaling has a factor.)
  void rotate_gradient(View<float, 3> x, const std::int64_t* positions) { turn(x, positions, true); }
  const RotaryConfig& config() const { return config_; }

  static constexpr std::int64_t kTableRows = 65536;  // 32 MiB at 64 pairs

 private:
  void turn(View<float, 3> x, const std::int64_t* positions, bool back);
  void grow(std::int64_t rows);
  void make_row(std::int64_t position, float* cosines, float* sines) const;

  RotaryConfig config_;
  RotaryFrequencies frequencies_;
  std::int64_t rows_ = 0;
  std::vector<float> cos_, sin_;  // [rows_, dim/2]
};

}  // namespace regard
