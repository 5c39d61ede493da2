#pragma once
// What both kinds of tokenizer offer to `Tokenizer`, which adds special tokens, BOS and EOS.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace regard {

class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the tokens of `text`, a part of a whole text that begins at byte `base` of it. `opens`: nothing but special
  // tokens stands directly before it. Ranges are those of the whole text.
  virtual void encode(std::string_view text, std::int64_t base, bool opens, std::vector<Token>& out) const = 0;
  // The bytes that a piece that is not special stands for.
  virtual std::string bytes(std::int32_t id) const = 0;
};

// `spec` has passed the checks that both kinds share and outlives the encoder. Errors as Tokenizer's constructor.
std::unique_ptr<Encoder> make_byte_level_encoder(const TokenizerSpec& spec);
std::unique_ptr<Encoder> make_sentencepiece_encoder(const TokenizerSpec& spec);

// What a piece is; a spec without types has normal ones only.
inline TokenType type_of(const TokenizerSpec& spec, std::size_t id) {
  return spec.types.empty() ? TokenType::normal : spec.types[id];
}

}  // namespace regard
