#pragma once
// Tokenizers that came before tokenizer.json: vocab.json with merges.txt (GPT-2), vocab.txt (BERT), and Marian's
// source.spm with vocab.json.

#include <filesystem>

#include "text/tokenizer_spec.h"

namespace regard {

// What stands in tokenizer_config.json, not in the vocabulary.
struct ByteLevelOptions {
  bool add_prefix_space = false;
  bool qwen2 = false;  // NFC and Qwen2's cuts instead of GPT-2's
};
struct WordPieceOptions {
  bool lowercase = true, space_ideographs = true;
  std::optional<bool> strip_accents;  // absent: as `lowercase`
};

// Errors: not_found, io, bad_input with file and line or place. Nothing is put round a text yet, and no token is
// special.
TokenizerSpec tokenizer_from_merges(const std::filesystem::path& vocabulary, const std::filesystem::path& merges,
                                    const ByteLevelOptions& options);
TokenizerSpec tokenizer_from_word_list(const std::filesystem::path& vocabulary, const WordPieceOptions& options);
TokenizerSpec tokenizer_from_marian(const std::filesystem::path& model, const std::filesystem::path& vocabulary);

}  // namespace regard
