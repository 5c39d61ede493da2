#pragma once

#include <functional>
#include <string>

#include "line.h"

namespace regard::bench {

// Attention forward and backward against the FMA peak (causal counted as the exact triangle), grouped decode against
// the read bandwidth, and what reading every row costs beside the forward pass.
void attention_lines(const std::string& filter, const std::function<void(const Line&)>& each);

}  // namespace regard::bench
