#pragma once
// A tokenizer as a file describes it: what a loader fills in and `Tokenizer` checks and runs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace regard {

// What a piece is; the numbers are GGUF's (`tokenizer.ggml.token_type`).
enum class TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// `Tokenizer`'s constructor checks all of it; a loader only copies.
struct TokenizerSpec {
  enum class Kind {
    byte_level_bpe,     // GPT-2 and its heirs: every byte is a letter of the alphabet, merges are ranked by `merges`
    sentencepiece_bpe,  // Llama, Gemma: characters are merged by `scores`, what is left falls back to byte pieces
  };

  Kind kind = Kind::byte_level_bpe;
  std::string pre;                  // byte_level_bpe: the pre-tokenizer as the file names it ("smollm", "qwen2"...)
  std::vector<std::string> pieces;  // [V] as stored: byte-level pieces in GPT-2's printable letters, spaces as U+2581
  std::vector<float> scores;        // [V] sentencepiece_bpe; may be empty otherwise
  std::vector<TokenType> types;     // [V], or empty: all normal
  std::vector<std::string> merges;  // byte_level_bpe: "left right", the strongest first
  std::optional<std::int32_t> bos, eos, unknown, padding;  // ids
  bool add_bos = false, add_eos = false;                   // put round every text
  bool add_space_prefix = false;  // sentencepiece_bpe: a text is read as if a space stood before it
  std::string chat_template;      // as stored; kept for whoever formats a conversation, never run here
};

}  // namespace regard
