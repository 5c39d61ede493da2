#pragma once
// The two kinds of files that a conversion reads (convert.h).

#include "weights/convert.h"
#include "weights/safetensors.h"

namespace regard {

Conversion convert_from_gguf(const std::filesystem::path& path, bool widen);
Conversion convert_from_safetensors(const std::filesystem::path& path, bool widen);

// Error{unsupported}: a quantised tensor, and nobody asked to widen it.
[[noreturn]] void refuse_quantised(const std::string& file, const std::string& tensor, std::string_view type);

// Bytes as they lie there, in pieces.
std::function<void(const ByteSink&)> copy_of(const std::byte* data, std::int64_t bytes);

}  // namespace regard
