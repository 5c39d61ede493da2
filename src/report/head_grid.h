#pragma once
// All heads at a glance: a cell per layer (across) and head (down), coloured by how strongly it read, with a letter for
// what.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/page.h"
#include "report/row_summary.h"

namespace regard {

struct HeadGrid {
  std::span<const std::int64_t> layers, heads;  // the chosen ones, by their own numbers
  std::span<const std::string> labels;          // [S] what to call each token
  std::span<const HeadRead> reads;              // layer by layer
  int width = 80;
};

// The grid and its legend.
void add_head_grid(Page& page, const HeadGrid& grid);

}  // namespace regard
