#pragma once
// The scanners of o200k (GPT-4o, gpt-oss) and of tekken (Mistral Nemo), whose words know upper case from lower.

#include <cstddef>

#include "text/scan-inl.h"

namespace regard {

// Where the word that begins at `i` ends (kO200kExpression, kTekkenExpression).
std::size_t o200k_word_end(const Part& part, std::size_t i);
std::size_t tekken_word_end(const Part& part, std::size_t i);

}  // namespace regard
