#pragma once
// Where in a text each token stands.

#include <cstdint>
#include <span>
#include <vector>

namespace regard {

class TokenPlaces {
 public:
  explicit TokenPlaces(std::span<const std::int32_t> tokens);

  std::int64_t size() const { return static_cast<std::int64_t>(rank_.size()); }
  // Positions before `position` that hold the same token as it, ascending. Empty for a position outside the text.
  std::span<const std::int32_t> earlier(std::int64_t position) const;

 private:
  std::vector<std::int32_t> order_;  // positions, sorted by token, then by position
  std::vector<std::int32_t> first_;  // [tokens] where in order_ the position's token begins
  std::vector<std::int32_t> rank_;   // [tokens] where in order_ the position itself is
};

}  // namespace regard
