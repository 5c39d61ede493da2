#pragma once

namespace regard {

// Of what is said to a person, and of made-up sentences.
enum class Language { english, chinese };

}  // namespace regard
