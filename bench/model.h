#pragma once

#include <string>
#include <vector>

#include "line.h"

namespace regard::bench {

// Tokens per second of a real model: 512 prompt tokens at once, and 64 single steps after 16.
std::vector<Line> model_lines(const std::string& path);

}  // namespace regard::bench
