#pragma once
#include <filesystem>

#include "weights/checkpoint.h"

namespace regard {

// load_checkpoint for a GGUF file.
Checkpoint load_gguf_checkpoint(const std::filesystem::path& path);

}  // namespace regard
