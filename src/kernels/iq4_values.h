#pragma once
// The 16 levels of the iq4 types, and of mxfp4. Source: ggml-common.h, kvalues_iq4nl and kvalues_mxfp4.

#include <cstdint>

namespace regard {

alignas(16) inline constexpr std::int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                           1,    13,   25,  38,  53,  69,  89,  113};
// Twice the numbers of E2M1, without a -0; the scale is halved instead.
alignas(16) inline constexpr std::int8_t kMxfp4Levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace regard
