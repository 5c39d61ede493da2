#pragma once
// SentencePiece's tokenizer.model: a protocol buffer (google/sentencepiece, sentencepiece_model.proto).

#include <filesystem>

#include "text/tokenizer_spec.h"

namespace regard {

// A BPE or Unigram model. Nothing is put round a text: whether BOS or EOS is, stands elsewhere. Errors: not_found, io,
// bad_input (the bytes are no such message, with the place), unsupported (another kind of model, or an option by name).
TokenizerSpec tokenizer_from_sentencepiece(const std::filesystem::path& path);

}  // namespace regard
