#pragma once
// A Hugging Face folder's tokenizer.

#include <filesystem>

#include "text/tokenizer_spec.h"

namespace regard {

// The vocabulary from the first of these that is there: tokenizer.json; tokenizer.model or spiece.model; source.spm
// with vocab.json (Marian); vocab.json with merges.txt; vocab.txt. BOS, EOS, padding, unknown, mask, separator and
// classification tokens as tokenizer_config.json, special_tokens_map.json, generation_config.json and config.json name
// them; the chat template as tokenizer_config.json or chat_template.jinja has it. Where config.json says that the model
// has more tokens than the tokenizer, the further ones are there, unused.
// Errors: not_found (none of these), and those of the readers, each with its file and place.
TokenizerSpec tokenizer_from_folder(const std::filesystem::path& folder);

}  // namespace regard
