#pragma once
// "Did you mean ...?"

#include <string>
#include <string_view>
#include <vector>

namespace regard {

// The one of `names` that somebody who typed `word` may have meant; empty when none is near. Counted are typing
// mistakes: letters put in, left out, changed, or swapped with a neighbour (Damerau).
std::string nearest_word(std::string_view word, const std::vector<std::string>& names);

}  // namespace regard
