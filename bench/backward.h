#pragma once

#include <functional>

#include "line.h"

namespace regard::bench {

// Attention backward against the FMA peak: 2.5 times the operations of forward, causal counted as the exact triangle.
void backward_lines(const std::function<void(const Line&)>& each);

}  // namespace regard::bench
