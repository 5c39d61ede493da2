#pragma once
// The 16 levels of the iq4 types. Source: ggml-common.h, kvalues_iq4nl.

#include <cstdint>

namespace regard {

alignas(16) inline constexpr std::int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                           1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace regard
