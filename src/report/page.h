#pragma once
// What a person gets to see, before it is known where: lines of styled text on a grid of columns. The terminal, SVG and
// HTML forms are three ways to write the same page.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/output.h"

namespace regard {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

struct Style {
  std::optional<Colour> ink = {}, paper = {};  // nothing: what the place has
  bool bold = false, faint = false;
};

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

// How a value in [0, 1] is shaded: nothing at 0, then greyish to bright orange, with an ink that is readable on it.
// Middle tones that are as clear on a dark page as on a light one.
Style heat(double value);
// Paper only, for something that is to be seen at every value (a grid's cells).
Colour heat_colour(double value);
// Black or white, whichever reads better on `paper`.
Colour ink_on(Colour paper);

enum class Colours { none, few, many, all };  // no colour, 16, 256, 24 bit

// Escape sequences of the terminal (ECMA-48 SGR); Colours::none gives the text alone.
std::string terminal_text(const Line& line, Colours colours);
void write_svg(Output& out, const Page& page);
// One file that needs nothing else; follows the reader's choice of dark or light.
void write_html(Output& out, const Page& page);

}  // namespace regard
