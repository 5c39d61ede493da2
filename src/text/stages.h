#pragma once
// The stages that a file means without spelling them out.

#include "text/tokenizer_spec.h"

namespace regard {

// What `spec.kind` and `spec.pre` stand for. Error{unsupported} for a pre-tokenizer that is not known, or a kind whose
// stages have no default.
Stages stages_of(const TokenizerSpec& spec);

}  // namespace regard
