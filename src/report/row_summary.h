#pragma once
// What one row read, boiled down for a person: shares per position without the sink, the strongest read of each head.

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/view.h"

namespace regard {

struct HeadRead {
  std::int64_t layer = 0, head = 0;  // indices into the chosen ones
  std::int64_t key = -1;             // read most, the sink aside; -1: nothing
  float weight = 0;
  float sink = 0;  // what the sink took
};

struct RowSummary {
  double sink_share = 0;      // what the sink took, mean over layers and heads
  std::vector<double> share;  // [S] of what was read beside the sink, over all layers and heads; sums to 1 or is all 0
  std::vector<HeadRead> heads;      // layer by layer
  std::vector<HeadRead> strongest;  // heads by falling weight, those that read something
};

// weights: [l][h][S] of one row, any strides. `sink`: the position that is left out.
RowSummary summarise_row(View<const float, 3> weights, std::optional<std::int64_t> sink);

}  // namespace regard
