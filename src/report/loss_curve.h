#pragma once
// The losses of a training as a curve: a few lines for a terminal, and a picture.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/output.h"
#include "report/page.h"

namespace regard {

// Means over `columns` stretches of equal length, in order; fewer where there are fewer losses.
std::vector<double> loss_stretches(std::span<const float> losses, std::int64_t columns);
// Rows of block signs, with the largest and the smallest loss at their sides.
std::vector<Line> loss_lines(std::span<const float> losses, int width, int height = 8);
// One SVG: the loss of every stretch over the steps, with both axes named.
void write_loss_svg(Output& out, std::span<const float> losses);

}  // namespace regard
