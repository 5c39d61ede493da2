#pragma once
// Tokens that are read from a text as they are written, before anything else: "<|im_start|>", "\n\n\n".

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

class SpecialTokens {
 public:
  // `text` is not empty. Of two with the same text the later one counts.
  void add(std::string_view text, std::int32_t id);
  // To be called after the last `add`, before the first `find`.
  void finish();

  struct Match {
    std::size_t begin, end;
    std::int32_t id;
  };
  // The first token at or behind `from`; of those that begin there, the longest (as the models' own tokenizers do).
  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  struct Entry {
    std::string text;
    std::int32_t id;
  };
  std::optional<Match> longest_at(std::string_view text, std::size_t at) const;

  std::vector<Entry> entries_;  // sorted by text: those that share a beginning are neighbours, which serves as a trie
  std::bitset<256> first_;      // bytes that a token begins with
};

}  // namespace regard
