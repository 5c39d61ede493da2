#pragma once
// SentencePiece's tokenizer.model: a protocol buffer (google/sentencepiece, sentencepiece_model.proto).

#include <filesystem>
#include <string>

#include "text/tokenizer_spec.h"

namespace regard {

// A BPE or Unigram model. Nothing is put round a text: whether BOS or EOS is, stands elsewhere. Errors: not_found, io,
// bad_input (the bytes are no such message, with the place), unsupported (another kind of model, or an option by name).
TokenizerSpec tokenizer_from_sentencepiece(const std::filesystem::path& path);

// The stages that such a model means: spaces are written U+2581, the map of characters (may be empty) goes first.
struct SentencePieceOptions {
  bool bpe = false;  // else Unigram
  std::string charsmap;
  bool squeeze = true;       // runs of spaces are one, none at the ends
  bool dummy_prefix = true;  // a space before a text
  bool byte_fallback = false;
};
Stages sentencepiece_stages(const SentencePieceOptions& options);

}  // namespace regard
