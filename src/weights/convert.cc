#include "weights/convert.h"

#include <algorithm>

#include "tensor/error.h"
#include "weights/convert_sources.h"
#include "weights/gguf.h"

namespace regard {

void refuse_quantised(const std::string& file, const std::string& tensor, std::string_view type) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: the tensor {} is quantised ({})", file, in_quotes(tensor), type),
              "with --f32 what is quantised is written as f32");
}

std::function<void(const ByteSink&)> copy_of(const std::byte* data, std::int64_t bytes) {
  static constexpr std::int64_t kPiece = 4 << 20;  // bytes
  return [=](const ByteSink& sink) {
    for (std::int64_t at = 0; at < bytes; at += kPiece) sink(data + at, std::min(kPiece, bytes - at));
  };
}

Conversion convert_from(const std::filesystem::path& path, bool widen) {
  return path.extension() == ".gguf" ? convert_from_gguf(path, widen) : convert_from_safetensors(path, widen);
}

}  // namespace regard
