#pragma once
// Text <-> tokens.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"

namespace regard {

// One token and the bytes of the original text that it covers: [begin, end). Tokens that stand for no text (an added
// BOS, a byte piece of a character that an earlier token already covers) have begin == end or share the character's
// range; see Tokenizer::encode.
struct Token {
  std::int32_t id = 0;
  std::int64_t begin = 0, end = 0;
};

struct EncodeOptions {
  bool parse_special = true;  // read "<|im_start|>" and the like in the text as the one token it names
  bool add_special = true;    // put BOS and EOS round the text where the file asks for it
};

// Immutable once made: any number of threads may use one.
class Tokenizer {
 public:
  // Checks the whole of `spec`; Error{bad_input} names the place, Error{unsupported} an unknown pre-tokenizer.
  explicit Tokenizer(TokenizerSpec spec);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Any bytes are a text: a byte that is not part of valid UTF-8 stands for itself (byte-level BPE, byte fallback). The
  // ranges of the tokens ascend and, without the added tokens, cover the text without a gap.
  std::vector<Token> encode(std::string_view text, EncodeOptions options = {}) const;
  std::vector<std::int32_t> encode_ids(std::string_view text, EncodeOptions options = {}) const;

  // The exact bytes that token stands for; a special token's are its text. Error{bad_input} for an id out of range.
  std::string bytes(std::int32_t id) const;
  // The tokens' bytes, one after the other. (A space that `add_space_prefix` put before the text is part of the first.)
  std::string decode(std::span<const std::int32_t> ids) const;

  std::int64_t vocabulary() const;
  std::optional<std::int32_t> bos() const, eos() const, unknown() const, padding() const;
  bool is_special(std::int32_t id) const;  // control and unknown tokens: they stand for no text
  std::string_view kind_name() const;      // for people: "byte-level BPE (smollm)"
  const TokenizerSpec& spec() const;

 private:
  struct Model;
  std::unique_ptr<const Model> model_;
};

}  // namespace regard
