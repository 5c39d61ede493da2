#pragma once
// Text inside XML and HTML.

#include <string>
#include <string_view>

namespace regard {

// &, <, >, " and ' as entities.
std::string markup_text(std::string_view text);

}  // namespace regard
