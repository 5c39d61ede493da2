#pragma once
// The 16 levels of the iq4 types. Source: ggml-common.h, kvalues_iq4nl.

#include <cstdint>

namespace regard {

inline constexpr std::int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
alignas(16) inline constexpr std::uint8_t kIq4LevelsPlus128[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                                   129, 141, 153, 166, 181, 197, 217, 241};

}  // namespace regard
