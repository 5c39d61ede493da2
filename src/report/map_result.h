#pragma once
// A rectangle of a pattern with what a report needs beside it, and its forms. Pictures shade a cell by the square root
// of its share of the largest: small weights stay visible, and 0 is the page.

#include <vector>

#include "reading/tile_map.h"
#include "report/output.h"
#include "report/page.h"
#include "report/results.h"

namespace regard {

struct MapResult {
  ModelSummary model;
  std::vector<TokenPiece> tokens;
  TileMap map;
  double seconds = 0;
};

float largest_cell(const TileMap& map);      // of those that are numbers; 0 where there is none
Tensor<float, 2> heats(const TileMap& map);  // [height][width] in [0, 1], how each cell is shaded

void write_json(Output& out, const MapResult& result);
void write_npz(Output& out, const MapResult& result);
void write_svg(Output& out, const MapResult& result);
void write_png(Output& out, const MapResult& result);  // a pixel for each cell

// For a terminal: two rows of cells in one line where there are colours, else one, by density. Error{usage} when the
// map is wider than the place.
struct MapPageOptions {
  int width = 80;
  bool coloured = true;
};
Page map_page(const MapResult& result, const MapPageOptions& options);
// The columns that the page takes beside the cells.
int map_margin(std::int64_t rows);

}  // namespace regard
