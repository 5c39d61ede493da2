#pragma once
// What a person gets to see, before it is known where: lines of styled text on a grid of columns. The terminal, SVG and
// HTML forms are three ways to write the same page.

#include <optional>
#include <string>
#include <vector>

#include "report/output.h"
#include "report/shade.h"

namespace regard {

struct Style {
  std::optional<Colour> ink = {};    // nothing: what the place has
  std::optional<Colour> paper = {};  // where nothing shades it; terminals only
  double heat = 0;                   // shaded by this value
  bool cool = false;                 // in blue, not in orange
  bool bold = false, faint = false;
};
inline constexpr Style kTitle{.bold = true}, kFaint{.faint = true};

struct Piece {
  std::string text;  // valid UTF-8 without control characters
  int columns = 0;   // that it takes
  Style style;
  std::string note;  // shown when pointed at, where that is possible
};

using Line = std::vector<Piece>;
int columns(const Line& line);

struct Page {
  std::string title;
  std::vector<Line> lines;

  // Pieces of plain text, whose columns are counted here.
  Line& add_line(std::string text = {}, Style style = {});
};
Piece piece(std::string text, Style style = {}, std::string note = {});
// Cuts what is wider than `width`; … stands where something was cut.
void fit(Page& page, int width);

enum class Colours { none, few, many, all };  // no colour, 16, 256, 24 bit

// Escape sequences of the terminal (ECMA-48 SGR); Colours::none gives the text alone.
std::string terminal_text(const Line& line, Colours colours);
void write_svg(Output& out, const Page& page);
// One file that needs nothing else. Both follow the reader's choice of dark or light.
void write_html(Output& out, const Page& page);

}  // namespace regard
