// Lines as escape sequences.

#include <algorithm>
#include <array>
#include <cstdlib>

#include "report/page.h"

namespace regard {
namespace {

int distance(Colour a, Colour b) {
  const int red = a.red - b.red, green = a.green - b.green, blue = a.blue - b.blue;
  return red * red + green * green + blue * blue;
}

// xterm's colour cube (16 + 36 r + 6 g + b) and its 24 greys (232...).
int nearest_of_256(Colour colour) {
  constexpr std::array<int, 6> kSteps = {0, 95, 135, 175, 215, 255};
  const auto step = [&](int value) {
    int best = 0;
    for (int i = 1; i < 6; ++i)
      if (std::abs(kSteps[i] - value) < std::abs(kSteps[best] - value)) best = i;
    return best;
  };
  const auto byte = [](int value) { return static_cast<std::uint8_t>(value); };
  const int r = step(colour.red), g = step(colour.green), b = step(colour.blue);
  const Colour in_cube{byte(kSteps[r]), byte(kSteps[g]), byte(kSteps[b])};
  const int level = std::clamp(((colour.red + colour.green + colour.blue) / 3 - 3) / 10, 0, 23);
  const Colour grey{byte(8 + 10 * level), byte(8 + 10 * level), byte(8 + 10 * level)};
  return distance(grey, colour) < distance(in_cube, colour) ? 232 + level : 16 + 36 * r + 6 * g + b;
}

// The 16 colours as xterm has them; what a person set may differ.
int nearest_of_16(Colour colour) {
  constexpr std::array<Colour, 16> kPalette = {{{0, 0, 0},
                                                {205, 0, 0},
                                                {0, 205, 0},
                                                {205, 205, 0},
                                                {0, 0, 238},
                                                {205, 0, 205},
                                                {0, 205, 205},
                                                {229, 229, 229},
                                                {127, 127, 127},
                                                {255, 0, 0},
                                                {0, 255, 0},
                                                {255, 255, 0},
                                                {92, 92, 255},
                                                {255, 0, 255},
                                                {0, 255, 255},
                                                {255, 255, 255}}};
  int best = 0;
  for (int i = 1; i < 16; ++i)
    if (distance(kPalette[i], colour) < distance(kPalette[best], colour)) best = i;
  return best;
}

void append(std::string& codes, const std::string& code) {
  if (!codes.empty()) codes += ';';
  codes += code;
}

std::string colour_code(Colour colour, Colours colours, bool paper) {
  if (colours == Colours::all)
    return std::string(paper ? "48" : "38") + ";2;" + std::to_string(colour.red) + ';' + std::to_string(colour.green) +
           ';' + std::to_string(colour.blue);
  if (colours == Colours::many) return (paper ? "48;5;" : "38;5;") + std::to_string(nearest_of_256(colour));
  const int index = nearest_of_16(colour);
  return std::to_string((index < 8 ? 30 + index : 82 + index) + (paper ? 10 : 0));
}

}  // namespace

std::string terminal_text(const Line& line, Colours colours) {
  std::string text;
  for (const Piece& piece : line) {
    std::string codes;
    if (colours != Colours::none) {
      if (piece.style.bold) append(codes, "1");
      if (piece.style.faint) append(codes, "2");
      if (piece.style.heat > kFaintestShade) {
        const Shade shading = shade(piece.style.heat, Background::unknown, piece.style.cool);
        append(codes, colour_code(shading.ink, colours, false));
        append(codes, colour_code(shading.paper, colours, true));
      } else {
        if (piece.style.ink) append(codes, colour_code(*piece.style.ink, colours, false));
        if (piece.style.paper) append(codes, colour_code(*piece.style.paper, colours, true));
      }
    }
    if (codes.empty()) {
      text += piece.text;
    } else {
      text += "\x1b[" + codes + 'm' + piece.text + "\x1b[0m";
    }
  }
  return text;
}

}  // namespace regard
