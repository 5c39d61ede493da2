#pragma once
#include "weights/gguf.h"
#include "weights/model_config.h"

namespace regard {

// The configuration that a GGUF describes, all but what only its tensors tell (a tied head, rotary divisors).
// `tensors`: how many tensors all its files hold. Errors: bad_input naming the key; unsupported for an architecture
// that regard cannot run and for a key of the architecture that it does not understand, both by name.
ModelConfig config_from_gguf(const GgufFile& gguf, std::int64_t tensors);

}  // namespace regard
