// The page as an SVG drawing: every piece at its column, so that it looks the same with any font.

#include <fmt/core.h>

#include "report/markup.h"
#include "report/page.h"

namespace regard {
namespace {

constexpr double kCellWidth = 8.4, kLineHeight = 19, kBaseline = 14, kMargin = 16;

// Neighbouring classes as one attribute.
std::string classes(const Piece& piece) {
  std::string names = heat_class(piece.style.heat, piece.style.cool);
  if (piece.style.bold) names += names.empty() ? "bold" : " bold";
  if (piece.style.faint) names += names.empty() ? "faint" : " faint";
  return names.empty() ? "" : " class=\"" + names + '"';
}

void draw(Output& out, const Piece& piece, double x, double y) {
  const double width = piece.columns * kCellWidth;
  const std::string note = piece.note.empty() ? "" : "<title>" + markup_text(piece.note) + "</title>";
  if (const std::string heat = heat_class(piece.style.heat, piece.style.cool); !heat.empty())
    out.write(fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\">{}</rect>\n",
                          heat, x, y, width, kLineHeight, note));
  if (piece.text.find_first_not_of(' ') == std::string::npos) return;
  const std::string ink = piece.style.ink ? " style=\"fill:" + markup_colour(*piece.style.ink) + '"' : "";
  out.write(fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" textLength=\"{:.1f}\" lengthAdjust=\"spacingAndGlyphs\"{}{}>{}{}</text>\n", x,
      y + kBaseline, width, classes(piece), ink, note, markup_text(piece.text)));
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
      ".bold{font-weight:bold}.page{fill:#fff}text.faint{fill:#6e7781}\n"
      "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}text.faint{fill:#8b949e}}\n" +
      heat_rules(true) + "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
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
