// The page as an SVG drawing: every piece at its column, so that it looks the same with any font.

#include <fmt/format.h>

#include "report/markup.h"
#include "report/page.h"

namespace regard {
namespace {

constexpr double kCellWidth = 8.4, kLineHeight = 19, kBaseline = 14, kMargin = 16;

std::string hex(Colour colour) { return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue); }

void draw(Output& out, const Piece& piece, double x, double y) {
  const double width = piece.columns * kCellWidth;
  if (piece.style.paper)
    out.write(fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>\n", x, y, width,
                          kLineHeight, hex(*piece.style.paper)));
  if (piece.text.find_first_not_of(' ') == std::string::npos) return;
  std::string attributes;
  if (piece.style.ink) attributes += fmt::format(" style=\"fill:{}\"", hex(*piece.style.ink));
  if (piece.style.bold) attributes += " font-weight=\"bold\"";
  if (piece.style.faint) attributes += " class=\"faint\"";
  out.write(fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" textLength=\"{:.1f}\" lengthAdjust=\"spacingAndGlyphs\"{}>", x,
                        y + kBaseline, width, attributes));
  if (!piece.note.empty()) out.write("<title>" + markup_text(piece.note) + "</title>");
  out.write(markup_text(piece.text) + "</text>\n");
}

}  // namespace

void write_svg(Output& out, const Page& page) {
  int widest = 1;
  for (const Line& line : page.lines) widest = std::max(widest, columns(line));
  const double width = widest * kCellWidth + 2 * kMargin;
  const double height = static_cast<double>(page.lines.size()) * kLineHeight + 2 * kMargin;
  out.write(
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
                  "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n",
                  width, height, markup_text(page.title)));
  out.write(
      "<style>\n"
      "text{font:14px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}\n"
      ".page{fill:#fff}.faint{fill:#6e7781}\n"
      "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.faint{fill:#8b949e}}\n"
      "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
  double y = kMargin;
  for (const Line& line : page.lines) {
    double x = kMargin;
    for (const Piece& piece : line) {
      draw(out, piece, x, y);
      x += piece.columns * kCellWidth;
    }
    y += kLineHeight;
  }
  out.write("</svg>\n");
}

}  // namespace regard
