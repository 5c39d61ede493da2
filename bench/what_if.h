#pragma once

#include <string>
#include <vector>

#include "line.h"

namespace regard::bench {

// What-ifs of a real model on a text of 100 tokens: sweeps, whose figure is counted on the linear layers' products that
// must be done, beside the whole runs that they replace; and `why` on 30 tokens.
void what_if_lines(const std::string& path, const std::string& filter, const std::function<void(const Line&)>& each);

}  // namespace regard::bench
