#include "report/page.h"

#include <utility>

#include "text/display.h"
#include "text/utf8.h"

namespace regard {

int columns(const Line& line) {
  int sum = 0;
  for (const Piece& piece : line) sum += piece.columns;
  return sum;
}

Piece piece(std::string text, Style style, std::string note) {
  const int width = regard::columns(std::string_view(text));
  return {std::move(text), width, style, std::move(note)};
}

Line& Page::add_line(std::string text, Style style) {
  lines.emplace_back();
  if (!text.empty()) lines.back().push_back(piece(std::move(text), style));
  return lines.back();
}

void fit(Page& page, int width) {
  for (Line& line : page.lines) {
    if (columns(line) <= width) continue;
    int used = 0;
    std::size_t i = 0;
    while (used + line[i].columns < width) used += line[i++].columns;
    Piece& last = line[i];  // crosses the edge, or just reaches it
    std::string kept;
    for (std::size_t at = 0; at < last.text.size();) {
      const std::size_t next = at + character_at(last.text, at).length;
      if (used + regard::columns(std::string_view(last.text).substr(0, next)) >= width) break;
      at = next;
      kept = last.text.substr(0, at);
    }
    last = piece(kept + "…", last.style, last.note);
    line.resize(i + 1);
  }
}

}  // namespace regard
