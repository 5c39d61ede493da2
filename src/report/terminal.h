#pragma once
// What the terminal can show.

#include <functional>
#include <string>

#include "report/page.h"

namespace regard {

struct Terminal {
  bool interactive = false;  // somebody looks at it
  int columns = 80;
  Colours colours = Colours::none;
};

// `descriptor`: where the text goes. `variable` reads the environment (nullptr when unset), so that a test can pretend.
// NO_COLOR (no-color.org) and `no_color` mean none; CLICOLOR_FORCE asks for colours where nobody seems to look;
// COLORTERM and TERM say how many there are; COLUMNS is taken where the terminal does not tell its width.
Terminal describe_terminal(int descriptor, bool no_color, const std::function<const char*(const char*)>& variable);

}  // namespace regard
