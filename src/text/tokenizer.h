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

// One token and the bytes of the original text that it stands for: [begin, end).
struct Token {
  std::int32_t id = 0;
  std::int64_t begin = 0, end = 0;
};

struct EncodeOptions {
  bool parse_special = true;  // read "<|im_start|>" and the like in the text as the one token it names
  bool add_special = true;    // put round the text what the file asks for: BOS and EOS, [CLS] and [SEP]
};

// Immutable once made: any number of threads may use one.
class Tokenizer {
 public:
  // Checks the whole of `spec`; Error{bad_input} names the place, Error{unsupported} a pre-tokenizer that is not known
  // or an expression that cannot be run.
  // Of two pieces written the same the later one counts; an empty piece is never found in a text.
  explicit Tokenizer(TokenizerSpec spec);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Any bytes are a text; one that is not part of valid UTF-8 is a character of its own, and no letter. Ranges follow
  // one another without a gap, but for: what is put before and behind the text, whose range is empty; characters that
  // normalisation joined or put in order, where every token of the result has the range of them all; and what a file
  // has taken away from the text (BERT's white space), which is in no range. Error{bad_input} names a byte for which
  // the vocabulary has no token.
  std::vector<Token> encode(std::string_view text, EncodeOptions options = {}) const;
  std::vector<std::int32_t> encode_ids(std::string_view text, EncodeOptions options = {}) const;

  // The exact bytes that a token stands for; a special token's are its text. Error{bad_input} for an id out of range.
  std::string bytes(std::int32_t id) const;
  // The tokens' bytes, one after the other; between words a space where pieces are written without (WordPiece). A space
  // that was put before the text is among them.
  std::string decode(std::span<const std::int32_t> ids) const;

  std::int64_t vocabulary() const;
  std::optional<std::int32_t> bos() const;
  std::optional<std::int32_t> eos() const;
  std::optional<std::int32_t> unknown() const;
  std::optional<std::int32_t> padding() const;
  std::optional<std::int32_t> mask() const;
  std::optional<std::int32_t> separator() const;
  std::optional<std::int32_t> classification() const;
  bool is_special(std::int32_t id) const;  // a control or unknown token: it stands for no text of its own
  bool ends_text(std::int32_t id) const;   // EOS, or what else the file says ends a turn: generation stops here
  std::string_view kind_name() const;      // for people: "byte-level BPE (smollm)"
  const TokenizerSpec& spec() const;

 private:
  void check_id(std::int32_t id) const;
  struct Model;
  std::unique_ptr<const Model> model_;
};

}  // namespace regard
