#pragma once
// The metadata of an architecture, "llama.block_count" and so on, with errors that name the key.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weights/gguf.h"

namespace regard {

class GgufKeys {
 public:
  explicit GgufKeys(const GgufFile& gguf);

  const GgufFile& file() const { return gguf_; }
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  [[noreturn]] void bad(std::string_view key, std::string_view what) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view what) const;

  // A number of things, at least 1. Per-layer lists count if all layers say the same.
  std::optional<std::int64_t> find_extent(std::string_view key, std::int64_t layers = 0) const;
  std::int64_t extent(std::string_view key, std::int64_t layers = 0) const;
  std::optional<double> find_positive(std::string_view key) const;
  // Error{unsupported} naming the first key of the architecture that is in neither list.
  void refuse_unknown(std::span<const std::string_view> understood, std::span<const std::string_view> more) const;

 private:
  const GgufFile& gguf_;
  std::string prefix_;
};

}  // namespace regard
