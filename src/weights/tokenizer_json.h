#pragma once
// Hugging Face's tokenizer.json.

#include <filesystem>

#include "text/tokenizer_spec.h"

namespace regard {

// Errors: not_found, io, bad_input (not JSON, or not a tokenizer, with the place), unsupported (a model, normalizer,
// pre-tokenizer, post-processor, decoder or option that is not known, by name and place). Ids of BOS, EOS and the like
// stand in other files of the folder. What the file says of truncation and padding is left to whoever builds batches.
TokenizerSpec tokenizer_from_json(const std::filesystem::path& path);

}  // namespace regard
