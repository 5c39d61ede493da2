// The angles of the rotary positions. Every formula is the one of transformers/modeling_rope_utils.py, in double.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/rotary.h"
#include "tensor/error.h"

namespace regard {
namespace {

void require(bool good, const char* field, double value, const char* should_be) {
  if (!good) {
    throw Error(ErrorCode::bad_input, fmt::format("rotary positions: {} is {}, which has no meaning", field, value),
                fmt::format("{} must be {}", field, should_be));
  }
}

void require_positive(const char* field, double value) {
  require(std::isfinite(value) && value > 0, field, value, "a finite number above 0");
}

void require_factors(const char* field, const std::vector<double>& factors, std::int64_t pairs) {
  require(static_cast<std::int64_t>(factors.size()) == pairs, field, static_cast<double>(factors.size()),
          "a list of dim / 2 numbers");
  for (double factor : factors) require_positive(field, factor);
}

// inverse[i] = base^(-2i / dim)                                                       Su et al. 2021, section 3.2.2
std::vector<double> plain_inverse(double base, std::int64_t dim) {
  std::vector<double> inverse(static_cast<std::size_t>(dim / 2));
  for (std::int64_t i = 0; i < dim / 2; ++i)
    inverse[i] = 1 / std::pow(base, static_cast<double>(2 * i) / static_cast<double>(dim));
  return inverse;
}

void stretch_linear(const RotaryConfig& c, RotaryFrequencies& f) {
  for (double& inverse : f.inverse) inverse /= c.factor;
}

// The base grows with the length once that is past the context the model was trained for.
void stretch_dynamic_ntk(const RotaryConfig& c, std::int64_t length, RotaryFrequencies& f) {
  require_positive("context", static_cast<double>(c.context));
  require(c.dim > 2, "dim", static_cast<double>(c.dim), "above 2 for dynamic NTK");
  const double ratio = static_cast<double>(std::max(length, c.context)) / static_cast<double>(c.context);
  const double grown = c.factor * ratio - (c.factor - 1);
  const double dim = static_cast<double>(c.dim);
  f.inverse = plain_inverse(c.base * std::pow(grown, dim / (dim - 2)), c.dim);
}

// Short wavelengths stay, long ones are stretched, those between are blended.
void stretch_llama3(const RotaryConfig& c, RotaryFrequencies& f) {
  require_positive("original_context", static_cast<double>(c.original_context));
  require_positive("low_frequency_factor", c.low_frequency_factor);
  require(std::isfinite(c.high_frequency_factor) && c.high_frequency_factor > c.low_frequency_factor,
          "high_frequency_factor", c.high_frequency_factor, "above low_frequency_factor");
  const double context = static_cast<double>(c.original_context);
  for (double& inverse : f.inverse) {
    const double wavelength = 2 * std::numbers::pi / inverse;
    if (wavelength > context / c.low_frequency_factor) {
      inverse /= c.factor;
    } else if (wavelength >= context / c.high_frequency_factor) {
      const double keep =
          (context / wavelength - c.low_frequency_factor) / (c.high_frequency_factor - c.low_frequency_factor);
      inverse = (1 - keep) * inverse / c.factor + keep * inverse;
    }
  }
}

double yarn_mscale(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

// Pairs that turn more than beta_fast times within the original context stay, those that turn less than beta_slow times
// are stretched, with a ramp over the pairs between.                                      Peng et al. 2023, section 3.2
void stretch_yarn(const RotaryConfig& c, RotaryFrequencies& f) {
  const double context = static_cast<double>(c.original_context > 0 ? c.original_context : c.context);
  require_positive("original_context", context);
  require(c.base > 1, "base", c.base, "above 1 for yarn");
  require_positive("beta_fast", c.beta_fast);
  require_positive("beta_slow", c.beta_slow);
  const double dim = static_cast<double>(c.dim);
  const auto pair_that_turns = [&](double times) {
    return dim * std::log(context / (times * 2 * std::numbers::pi)) / (2 * std::log(c.base));
  };
  double low = pair_that_turns(c.beta_fast);
  double high = pair_that_turns(c.beta_slow);
  if (c.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < f.inverse.size(); ++i) {
    const double stretch = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    f.inverse[i] = f.inverse[i] / c.factor * stretch + f.inverse[i] * (1 - stretch);
  }
  if (c.attention_factor != 0) {
    f.attention_factor = c.attention_factor;
  } else if (c.mscale != 0 && c.mscale_all_dim != 0) {
    f.attention_factor = yarn_mscale(c.factor, c.mscale) / yarn_mscale(c.factor, c.mscale_all_dim);
  } else {
    f.attention_factor = yarn_mscale(c.factor, 1);
  }
}

// A divisor per pair, found by search, one list for lengths up to the original context and one for longer ones.
void stretch_longrope(const RotaryConfig& c, std::int64_t length, RotaryFrequencies& f) {
  require_positive("original_context", static_cast<double>(c.original_context));
  const bool is_long = length > c.original_context;
  const std::vector<double>& factors = is_long ? c.long_factors : c.short_factors;
  require_factors(is_long ? "long_factors" : "short_factors", factors, c.dim / 2);
  for (std::size_t i = 0; i < f.inverse.size(); ++i) f.inverse[i] /= factors[i];
  const double context = static_cast<double>(c.original_context);
  const double factor = c.context > 0 ? static_cast<double>(c.context) / context : c.factor;
  if (c.attention_factor != 0) {
    f.attention_factor = c.attention_factor;
  } else if (factor > 1) {
    require(context > 1, "original_context", context, "above 1");
    f.attention_factor = std::sqrt(1 + std::log(factor) / std::log(context));
  }
}

}  // namespace

RotaryFrequencies rotary_frequencies(const RotaryConfig& config, std::int64_t length) {
  require(config.dim >= 0 && config.dim % 2 == 0, "dim", static_cast<double>(config.dim), "even and not negative");
  require_positive("base", config.base);
  require_positive("factor", config.factor);
  RotaryFrequencies f{plain_inverse(config.base, config.dim), 1};
  switch (config.scaling) {
    case RotaryScaling::none:
      break;
    case RotaryScaling::linear:
      stretch_linear(config, f);
      break;
    case RotaryScaling::dynamic_ntk:
      stretch_dynamic_ntk(config, length, f);
      break;
    case RotaryScaling::llama3:
      stretch_llama3(config, f);
      break;
    case RotaryScaling::yarn:
      stretch_yarn(config, f);
      break;
    case RotaryScaling::longrope:
      stretch_longrope(config, length, f);
      break;
  }
  if (!config.frequency_divisors.empty()) {
    require_factors("frequency_divisors", config.frequency_divisors, config.dim / 2);
    for (std::size_t i = 0; i < f.inverse.size(); ++i) f.inverse[i] /= config.frequency_divisors[i];
  }
  require_positive("attention_factor", f.attention_factor);
  for (double inverse : f.inverse)  // 2^62: whatever the position, the angle is a number
    require(std::isfinite(inverse * 0x1p62), "an angle per position", inverse, "finite at every position");
  return f;
}

}  // namespace regard
