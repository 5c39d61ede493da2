#pragma once
// SentencePiece's precompiled map of characters: what to write for which, found in a double-array trie.
// (google/sentencepiece, normalizer.cc; the trie is Darts-clone's, each unit four bytes.)

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/rewritten.h"

namespace regard {

class Charsmap {
 public:
  // `blob`: four bytes (little-endian) that say how long the trie is; the trie; the texts, each ended by a zero byte.
  // Error{bad_input} for a blob that is cut. Whatever else it may hold, look-ups stay within it and end.
  explicit Charsmap(std::string_view blob);

  // As SentencePiece has it: the longest entry that the text goes on with, else one character.
  std::optional<Rewritten> apply(std::string_view text) const;
  // As Hugging Face's `Precompiled` has it: a grapheme of less than six bytes is looked up as a whole, others by their
  // characters; the shortest entry that it begins with replaces all of it.
  std::optional<Rewritten> apply_by_grapheme(std::string_view text) const;

 private:
  struct Found {
    std::size_t length;      // of the entry
    std::string_view value;  // what is written for it
  };
  std::optional<Found> find(std::string_view text, bool longest) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace regard
