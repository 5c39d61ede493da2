#pragma once

#include <functional>
#include <string>

#include "line.h"

namespace regard::bench {

// The dense product: 512 rows against the FMA peak, one row against the read bandwidth.
void dense_lines(const std::string& filter, const std::function<void(const Line&)>& each);

}  // namespace regard::bench
