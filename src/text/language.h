#pragma once

#include <string_view>

namespace regard {

// Of what is said to a person, and of made-up sentences.
enum class Language { english, chinese };

// Its code of two letters (ISO 639-1).
constexpr std::string_view code(Language language) { return language == Language::english ? "en" : "zh"; }

}  // namespace regard
