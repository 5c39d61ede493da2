#pragma once
// The stages of a Hugging Face tokenizer.json: normalizer, pre_tokenizer, post_processor, decoder.

#include "text/tokenizer_spec.h"
#include "weights/checked_json.h"

namespace regard {

// What reads `root` (the whole document) into `stages`. A step that is not known is Error{unsupported} with its name
// and place. Returns whether the pre-tokenizer spells words in GPT-2's letters for bytes.
bool read_stages(const JsonPlace& root, Stages& stages);

}  // namespace regard
