// A map for a terminal.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/map_result.h"
#include "report/phrases.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::size_t kTilesShown = 5;

std::string range(const std::vector<std::int64_t>& edges, std::int64_t at) {
  return edges[at + 1] - edges[at] == 1 ? std::to_string(edges[at])
                                        : fmt::format("{} to {}", edges[at], edges[at + 1] - 1);
}

// Two cells, one above the other, as one character.
Piece half_blocks(double above, double below) {
  const bool top = above > kFaintestShade, bottom = below > kFaintestShade;
  const auto colour = [](double heat) { return shade(heat, Background::unknown).paper; };
  if (!top && !bottom) return piece(" ");
  if (!bottom) return piece("▀", {.ink = colour(above)});
  if (!top) return piece("▄", {.ink = colour(below)});
  return piece("▀", {.ink = colour(above), .paper = colour(below)});
}

Piece density(double heat) {
  constexpr const char* kDense[] = {" ", "░", "▒", "▓", "█"};
  return piece(kDense[heat > kFaintestShade ? std::clamp(static_cast<int>(std::ceil(heat * 4)), 1, 4) : 0]);
}

void add_cells(Page& page, const MapResult& result, bool coloured) {
  const std::int64_t height = result.map.cells.shape()[0], width = result.map.cells.shape()[1];
  const int margin = map_margin(result.map.rows.back());
  const Tensor<float, 2> heat = heats(result.map);
  const std::int64_t step = coloured ? 2 : 1;
  for (std::int64_t y = 0; y < height; y += step) {
    const bool labelled = y / step % 4 == 0;
    Line& line =
        page.add_line(padded(labelled ? std::to_string(result.map.rows[y]) : "", margin - 1, true) + ' ', kFaint);
    for (std::int64_t x = 0; x < width; ++x)
      line.push_back(coloured ? half_blocks(heat(y, x), y + 1 < height ? heat(y + 1, x) : 0) : density(heat(y, x)));
  }
  const std::string first = std::to_string(result.map.keys.front()), last = std::to_string(result.map.keys.back() - 1);
  const auto room = static_cast<int>(width) - static_cast<int>(first.size());
  page.add_line(std::string(static_cast<std::size_t>(margin), ' ') + first +
                    (room > static_cast<int>(last.size()) ? padded(last, room, true) : ""),
                kFaint);
}

void add_strongest(Page& page, const MapResult& result) {
  const TileMap& map = result.map;
  const std::int64_t width = map.cells.shape()[1];
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < map.cells.size(); ++i)
    if (map.cells.data()[i] > 0) order.push_back(i);
  const std::size_t n = std::min(kTilesShown, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      const float x = map.cells.data()[a], y = map.cells.data()[b];
                      return x != y ? x > y : a < b;
                    });
  if (n == 0) return;
  page.add_line();
  page.add_line("largest cells", kTitle);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t y = order[i] / width, x = order[i] % width;
    std::string text =
        fmt::format("  row {} <- key {}  {:.3g}", range(map.rows, y), range(map.keys, x), map.cells(y, x));
    if (map.rows[y + 1] - map.rows[y] == 1 && map.keys[x + 1] - map.keys[x] == 1)
      text += fmt::format("  {} <- {}", in_quotes(result.tokens[map.rows[y]].bytes),
                          in_quotes(result.tokens[map.keys[x]].bytes));
    page.add_line(std::move(text));
  }
}

}  // namespace

int map_margin(std::int64_t rows) { return static_cast<int>(std::to_string(rows).size()) + 2; }

Page map_page(const MapResult& result, const MapPageOptions& options) {
  const TileMap& map = result.map;
  const std::int64_t width = map.cells.shape()[1], room = options.width - map_margin(map.rows.back());
  if (width > room)
    throw Error(ErrorCode::usage, fmt::format("a map of {} cells is wider than the {} columns there are", width, room),
                "choose a smaller --size, or write -o FILE.svg");
  Page page{.title = "regard map " + result.model.name, .lines = {}};
  page.add_line(fmt::format("layer {} head {}", map.request.layer, map.request.head), kTitle)
      .push_back(piece(fmt::format("  rows {} to {} down, keys {} to {} across; {} per cell, largest {:.3g}",
                                   map.rows.front(), map.rows.back() - 1, map.keys.front(), map.keys.back() - 1,
                                   name(map.request.pooling), largest_cell(map)),
                       kFaint));
  add_cells(page, result, options.coloured);
  add_strongest(page, result);
  fit(page, options.width);
  return page;
}

}  // namespace regard
