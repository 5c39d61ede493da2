#pragma once
// What stands on a page, without colours.

#include <string>
#include <vector>

#include "report/page.h"

namespace regard::testing {

inline std::string plain(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += terminal_text(line, Colours::none) + '\n';
  return text;
}
inline std::string plain(const Page& page) { return plain(page.lines); }

}  // namespace regard::testing
