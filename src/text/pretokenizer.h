#pragma once
// Pre-tokenizers cut a text into words; byte-level BPE never merges across a cut.
//
// The rules are the regular expressions of the models' own tokenizers, written out as scanners: linear in the text,
// where a backtracking engine is ten times slower. tests/text/pretokenizer_test.cc holds the expressions and compares.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

enum class PreTokenizer { gpt2, smollm, qwen2, llama3, o200k, tekken };

// The expressions as files write them; smollm has none of its own (digits one by one, then GPT-2's).
inline constexpr std::string_view kGpt2Expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kO200kExpression =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kTekkenExpression =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The rules of an expression, if it is one of these.
std::optional<PreTokenizer> pretokenizer_of_expression(std::string_view expression);
std::string_view expression_of(PreTokenizer rules);

// The pre-tokenizer that a file calls `name` ("gpt-2", "llama-bpe"...). Error{unsupported} for a name that is not
// known.
PreTokenizer pretokenizer_named(std::string_view name);

// Every name that `pretokenizer_named` takes.
std::vector<std::string> pretokenizer_names();

// What else a file of that kind does: put the text in NFC first; take a word that is a piece whole, without merging;
// put a BOS before every text, where it does not say.
bool normalizes(std::string_view name);
bool takes_whole_words(std::string_view name);
bool begins_with_bos(std::string_view name);

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
