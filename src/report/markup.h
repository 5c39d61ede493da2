#pragma once
// What XML and HTML need: text inside them, and the colours of a page as style rules.

#include <string>
#include <string_view>

#include "report/page.h"

namespace regard {

// &, <, >, " and ' as entities.
std::string markup_text(std::string_view text);

// "#0d1117"
std::string markup_colour(Colour colour);

// Shades come in this many steps, as the classes h1... (warm) and c1... (cool); heat_class gives "" for what has none.
inline constexpr int kHeatSteps = 20;
std::string heat_class(double heat, bool cool = false);
// Their rules, for the light page and for the dark one: of elements in HTML, of rect and text in SVG.
std::string heat_rules(bool svg);

}  // namespace regard
