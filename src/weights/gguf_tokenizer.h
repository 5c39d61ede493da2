#pragma once
#include "text/tokenizer_spec.h"
#include "weights/gguf.h"

namespace regard {

// The tokenizer that a GGUF describes, copied out of it. Errors: bad_input (lists whose lengths do not fit each other,
// an id past the vocabulary), unsupported (a kind of tokenizer that regard cannot run).
TokenizerSpec tokenizer_from_gguf(const GgufFile& gguf);

}  // namespace regard
