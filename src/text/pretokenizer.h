#pragma once
// Pre-tokenizers cut a text into words; byte-level BPE never merges across a cut.
//
// The rules are the regular expressions of the models' own tokenizers, written out as scanners: linear in the text,
// where a backtracking engine is ten times slower. tests/text/pretokenizer_test.cc holds the expressions and compares.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

enum class PreTokenizer { gpt2, smollm, qwen2, llama3 };

// The pre-tokenizer that a file calls `name` ("gpt-2", "llama-bpe"...). Error{unsupported} for a name that is not
// known.
PreTokenizer pretokenizer_named(std::string_view name);

// Every name that `pretokenizer_named` takes.
std::vector<std::string> pretokenizer_names();

// What else a file of that kind does: put the text in NFC first; take a word that is a piece whole, without merging.
bool normalizes(PreTokenizer rules);
bool takes_whole_words(PreTokenizer rules);

// Cuts a text from its beginning to its end.
class WordScanner {
 public:
  WordScanner(PreTokenizer rules, std::string_view text) : rules_(rules), text_(text) {}
  // The next word; empty at the end. Words follow one another without a gap.
  std::string_view next();

 private:
  std::size_t word_end(std::size_t begin);

  PreTokenizer rules_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t part_end_ = 0;  // smollm: where the part between two digits ends
};

}  // namespace regard
