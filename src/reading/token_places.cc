#include "reading/token_places.h"

#include <algorithm>
#include <numeric>

namespace regard {

TokenPlaces::TokenPlaces(std::span<const std::int32_t> tokens)
    : order_(tokens.size()), first_(tokens.size()), rank_(tokens.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) { return tokens[a] < tokens[b]; });
  std::int32_t first = 0;
  for (std::int32_t i = 0; i < std::ssize(order_); ++i) {
    if (tokens[order_[i]] != tokens[order_[first]]) first = i;
    first_[order_[i]] = first;
    rank_[order_[i]] = i;
  }
}

std::span<const std::int32_t> TokenPlaces::earlier(std::int64_t position) const {
  if (position < 0 || position >= size()) return {};
  return std::span(order_).subspan(first_[position], rank_[position] - first_[position]);
}

}  // namespace regard
