#pragma once
#include <filesystem>

#include "weights/checkpoint.h"

namespace regard {

// load_checkpoint for a Hugging Face folder: config.json, model.safetensors (or the shards that its index lists), a
// tokenizer.
Checkpoint load_hf_checkpoint(const std::filesystem::path& folder);

}  // namespace regard
