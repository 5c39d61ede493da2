#pragma once
// What a person typed as an answer, against the fraction that it should be.

#include <optional>
#include <string_view>

#include "lesson/rational.h"

namespace regard {

enum class Verdict { right, wrong, unreadable };

// A fraction "2/5", a decimal "0.4" or "0,4", a percentage "40 %", a whole number; spaces do not matter. A decimal is
// right when it is the truth, or the truth rounded to the places that were typed, of which there must be two (of a
// percentage none). More than 9 digits before or after the point are not read.
std::string_view name(Verdict verdict);
Verdict check_answer(std::string_view typed, const Rational& truth);

}  // namespace regard
