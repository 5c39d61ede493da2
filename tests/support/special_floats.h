#pragma once
// What is not finite.

#include <limits>

namespace regard::testing {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace regard::testing
