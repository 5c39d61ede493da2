#pragma once
// Bytes as a person sees them.

#include <string>
#include <string_view>

namespace regard {

// Valid UTF-8 as it is; every other byte as \xE4; characters that a terminal would obey instead of showing as \n, \t,
// \r, \x1B or \u202E. A backslash stays a backslash: this is for eyes, the exact bytes are elsewhere.
std::string display(std::string_view bytes);

// The columns that a terminal needs for a text that `display` made: a Chinese character or an emoji 2, a mark 0; what
// is one character to a reader (a family, a flag) counts once.
int columns(std::string_view text);

}  // namespace regard
