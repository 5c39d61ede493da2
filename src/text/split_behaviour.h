#pragma once
// What becomes of the matches that a word is split at.

#include <cstdint>
#include <vector>

#include "text/draft.h"
#include "text/tokenizer_spec.h"

namespace regard {

// A stretch of a word, and whether it is a match.
struct Stretch {
  std::uint32_t begin, end;
  bool matches;
};

// Appends to `out` the words that `behaviour` makes of the stretches that a word consists of, which are used up.
// (Hugging Face's tokenizers, normalizer.rs, split.)
void put_words(std::vector<Stretch>& stretches, CutStep::Behaviour behaviour, std::vector<Word>& out);

}  // namespace regard
