#pragma once
// A text whose tokens are shaded by a value each, laid out to a width.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/page.h"

namespace regard {

struct ShadedToken {
  std::string bytes;
  double value = 0;  // [0, 1]: the shade
  std::string note;
  bool marked = false;  // bold: the row that reads
  bool faint = false;   // set apart
  bool cool = false;    // works the other way: blue, or ░▒▓ in bars
};

struct ShadedTextLayout {
  int width = 80;        // columns
  int most_lines = 24;   // the first, the last and the most strongly shaded are kept, the others counted
  bool coloured = true;  // false: a line of bars under each line of text says what the paper cannot
};

// Neighbouring tokens that only together make up a character: [begin, end) ranges over tokens, in order, covering all.
struct TokenRange {
  std::size_t begin = 0, end = 0;
};
std::vector<TokenRange> whole_characters(std::span<const std::string> bytes);

std::vector<Line> shaded_text(std::span<const ShadedToken> tokens, const ShadedTextLayout& layout);

// "▁▂▃▄▅▆▇█" for a value in (0, 1], a space for less than one part in fifty.
std::string bar_glyph(double value);
// "░▒▓█" likewise: for what works the other way.
std::string cool_glyph(double value);
// A horizontal bar of at most `width` columns, to an eighth of a column; at least a sliver for what is not 0.
std::string bar(double value, int width);

}  // namespace regard
