#include "report/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "text/display.h"

namespace regard {
namespace {

// From a middle grey to a bright orange: equally far from black and from white at the low end, so that a faint shade is
// faint on either, and warm at the high end.
constexpr std::array<Colour, 5> kHeat = {
    {{110, 112, 122}, {150, 104, 84}, {204, 98, 40}, {246, 130, 20}, {255, 184, 28}}};
constexpr double kInvisible = 0.02;  // below it the paper stays as it is

}  // namespace

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

Colour heat_colour(double value) {
  const double place = std::clamp(std::isnan(value) ? 0.0 : value, 0.0, 1.0) * (kHeat.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(place), kHeat.size() - 2);
  const double part = place - static_cast<double>(low);
  const auto mix = [&](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * part));
  };
  const Colour a = kHeat[low], b = kHeat[low + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

Colour ink_on(Colour paper) {
  // Relative luminance and contrast as WCAG 2 defines them: black reads better from 0.179 on.
  const auto linear = [](std::uint8_t c) {
    const double s = c / 255.0;
    return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
  };
  const double luminance = 0.2126 * linear(paper.red) + 0.7152 * linear(paper.green) + 0.0722 * linear(paper.blue);
  return luminance > 0.179 ? Colour{0, 0, 0} : Colour{255, 255, 255};
}

Style heat(double value) {
  if (!(value > kInvisible)) return {};
  const Colour paper = heat_colour(value);
  return {.ink = ink_on(paper), .paper = paper};
}

}  // namespace regard
