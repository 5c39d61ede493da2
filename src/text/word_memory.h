#pragma once
// Words that came before in the same text: their tokens are copied, not worked out again.

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/draft.h"
#include "text/tokenizer.h"

namespace regard {

class WordMemory {
 public:
  // `text`: what all words are stretches of; `words`: how many there are about.
  WordMemory(std::string_view text, std::size_t words);
  // Appends the tokens of a word to `out`: its own where it is a token, those of an equal word before it, or else what
  // `make()` appends, which is remembered. `out` only grows.
  template <class Make>
  void append(const Word& word, std::vector<Token>& out, const Make& make) {
    if (word.token >= 0) return void(out.push_back({word.token, word.begin, word.end}));
    if (recall(word, out)) return;
    const std::size_t first = out.size();
    make();
    keep(word, first, out);
  }

 private:
  // Appends to `out` the tokens of an equal word that is remembered; false if there is none.
  bool recall(const Word& word, std::vector<Token>& out);
  // The tokens of the word that was asked for last are those of `out` from `first` on.
  void keep(const Word& word, std::size_t first, const std::vector<Token>& out);

  struct Entry {
    std::uint32_t begin = 0, length = 0;  // of the word; length 0: free
    std::uint32_t first = 0, count = 0;   // its tokens
  };
  std::string_view text_;
  std::vector<Entry> entries_;  // a power of two; a word has one place
  std::size_t place_ = 0;       // of the word that was asked for last
};

}  // namespace regard
