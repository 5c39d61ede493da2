#pragma once
// Running text of any language on lines of a given width.

#include <string>
#include <string_view>
#include <vector>

#include "report/page.h"

namespace regard {

// As many characters as fit into `width` columns.
std::string wrapped_at(const std::string& text, int width);
// Lines of at most `width` columns, broken between words and between Chinese characters.
std::vector<std::string> wrapped(std::string_view text, int width);
void add_wrapped_text(Page& page, std::string_view text, int width, int indent = 0, Style style = {});

}  // namespace regard
