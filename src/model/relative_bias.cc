#include "model/relative_bias.h"

#include <algorithm>
#include <cmath>

namespace regard {

std::int64_t relative_bucket(std::int64_t distance, bool causal, std::int64_t buckets, std::int64_t far) {
  std::int64_t first = 0, away = std::max<std::int64_t>(-distance, 0);
  if (!causal) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    away = std::abs(distance);
  }
  const std::int64_t exact = buckets / 2;
  if (away < exact) return first + away;
  const float scaled = std::log(static_cast<float>(away) / static_cast<float>(exact)) /
                       static_cast<float>(std::log(static_cast<double>(far) / static_cast<double>(exact))) *
                       static_cast<float>(buckets - exact);
  return first + std::min(exact + static_cast<std::int64_t>(scaled), buckets - 1);
}

View<const float, 3> RelativeBias::view(const Model& model, std::int64_t length) {
  const ModelConfig& c = model.config();
  if (length > length_) {
    length_ = std::max(length, 2 * length_);
    const std::int64_t n = 2 * length_ - 1;
    table_.resize(static_cast<std::size_t>(c.heads * n));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t bucket = relative_bucket(i - (length_ - 1), c.causal, c.relative_buckets, c.relative_distance);
      for (std::int64_t h = 0; h < c.heads; ++h) table_[h * n + i] = model.relative_bias()[bucket * c.heads + h];
    }
  }
  return {table_.data() + length_ - 1, {length_, c.heads, length_}, {-1, 2 * length_ - 1, 1}};
}

}  // namespace regard
