// The page as one HTML file.

#include <fmt/core.h>

#include "report/markup.h"
#include "report/page.h"

namespace regard {
namespace {

void write_piece(Output& out, const Piece& piece) {
  std::string classes = heat_class(piece.style.heat, piece.style.cool);
  if (piece.style.bold) classes += " bold";
  if (piece.style.faint) classes += " faint";
  std::string style;
  if (piece.style.ink) style += "color:" + markup_colour(*piece.style.ink) + ';';
  // A font's wide characters need not be two columns wide: such a piece gets its width from here.
  if (piece.columns != static_cast<int>(piece.text.size())) style += fmt::format("width:{}ch;", piece.columns);
  if (classes.empty() && style.empty() && piece.note.empty()) return out.write(markup_text(piece.text));
  std::string tag = "<span";
  if (!classes.empty()) tag += " class=\"" + classes + '"';
  if (!style.empty()) tag += " style=\"" + style + '"';
  if (!piece.note.empty()) tag += " title=\"" + markup_text(piece.note) + '"';
  out.write(tag + '>' + markup_text(piece.text) + "</span>");
}

}  // namespace

void write_html(Output& out, const Page& page) {
  out.write("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>" + markup_text(page.title) +
            "</title>\n"
            "<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n"
            ":root{color-scheme:light dark}\n"
            "body{margin:2em;background:#fff;color:#1f2328}\n"
            "pre{font:14px/1.35 'DejaVu Sans Mono',Menlo,Consolas,monospace}\n"
            "span{display:inline-block;white-space:pre}.bold{font-weight:bold}.faint{color:#6e7781}\n"
            "@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}.faint{color:#8b949e}}\n" +
            heat_rules(false) + "</style>\n<pre>");
  for (const Line& line : page.lines) {
    for (const Piece& piece : line) write_piece(out, piece);
    out.write("\n");
  }
  out.write("</pre>\n</html>\n");
}

}  // namespace regard
