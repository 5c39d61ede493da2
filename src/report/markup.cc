#include "report/markup.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace regard {

std::string markup_text(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string markup_colour(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

std::string heat_class(double heat, bool cool) {
  if (!(heat > kFaintestShade)) return {};
  const int step = static_cast<int>(std::lround(std::min(heat, 1.0) * kHeatSteps));
  return (cool ? "c" : "h") + std::to_string(std::max(step, 1));
}

std::string heat_rules(bool svg) {
  const auto rules = [&](Background background) {
    std::string text;
    for (const bool cool : {false, true}) {
      for (int step = 1; step <= kHeatSteps; ++step) {
        const std::string name = heat_class(static_cast<double>(step) / kHeatSteps, cool);
        const Shade s = shade(static_cast<double>(step) / kHeatSteps, background, cool);
        text +=
            svg ? fmt::format("rect.{0}{{fill:{1}}}text.{0}{{fill:{2}}}\n", name, markup_colour(s.paper),
                              markup_colour(s.ink))
                : fmt::format(".{}{{background:{};color:{}}}\n", name, markup_colour(s.paper), markup_colour(s.ink));
      }
    }
    return text;
  };
  return rules(Background::light) + "@media (prefers-color-scheme:dark){\n" + rules(Background::dark) + "}\n";
}

}  // namespace regard
