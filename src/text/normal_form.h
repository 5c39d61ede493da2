#pragma once
// Unicode normal form C (UAX #15), by utf8proc's tables (Unicode 15.0 in utf8proc 2.8).

#include <optional>
#include <string_view>

#include "text/rewritten.h"

namespace regard {

// `text` in NFC; nothing if it is so already. Bytes that are not valid UTF-8 stay as they are.
std::optional<Rewritten> normal_form_c(std::string_view text);

}  // namespace regard
