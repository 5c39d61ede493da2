#pragma once
// What every kind of tokenizer offers to `Tokenizer`: its model, which makes tokens of words.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/draft.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace regard {

// Thrown by an encoder: the vocabulary has no token for the character (byte-level: the byte, WordPiece: the word up to
// `end`) at `at` of the text.
struct NoToken {
  std::int64_t at, end = at + 1;
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the tokens of the words of `text`, in order. Ranges are those of `text`. Throws NoToken.
  virtual void encode(std::string_view text, const std::vector<Word>& words, std::vector<Token>& out) const = 0;
};

// `spec` has passed the checks that all kinds share; it and `stages` outlive the encoder. Errors as Tokenizer's
// constructor.
std::unique_ptr<Encoder> make_byte_level_encoder(const TokenizerSpec& spec, const Stages& stages);
std::unique_ptr<Encoder> make_sentencepiece_encoder(const TokenizerSpec& spec, const Stages& stages);
std::unique_ptr<Encoder> make_bpe_encoder(const TokenizerSpec& spec, const Stages& stages);
std::unique_ptr<Encoder> make_unigram_encoder(const TokenizerSpec& spec, const Stages& stages);
std::unique_ptr<Encoder> make_wordpiece_encoder(const TokenizerSpec& spec, const Stages& stages);

// What a piece is; a spec without types has normal ones only.
inline TokenType type_of(const TokenizerSpec& spec, std::size_t id) {
  return spec.types.empty() ? TokenType::normal : spec.types[id];
}
// Stands for no text of its own.
inline bool is_special_type(TokenType type) { return type == TokenType::control || type == TokenType::unknown; }

}  // namespace regard
