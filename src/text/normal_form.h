#pragma once
// Unicode normal forms (UAX #15), by utf8proc's tables (Unicode 15.0 in utf8proc 2.8).

#include <optional>
#include <string_view>

#include "text/rewritten.h"

namespace regard {

enum class NormalForm { c, d, kc, kd };

// `text` in the form; nothing if it is so already. Bytes that are not valid UTF-8 stay as they are.
std::optional<Rewritten> normal_form(std::string_view text, NormalForm form);

inline std::optional<Rewritten> normal_form_c(std::string_view text) { return normal_form(text, NormalForm::c); }

}  // namespace regard
