#include "weights/gguf_keys.h"

#include <algorithm>
#include <cmath>

#include "tensor/error.h"
#include "weights/model_config.h"

namespace regard {
namespace {

bool among(std::span<const std::string_view> list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

}  // namespace

GgufKeys::GgufKeys(const GgufFile& gguf)
    : gguf_(gguf), prefix_(std::string(gguf.string("general.architecture")) + ".") {}

void GgufKeys::bad(std::string_view key, std::string_view what) const {
  throw Error(ErrorCode::bad_input, fmt::format("{}: {} {}", gguf_.file, in_quotes(name(key)), what));
}

void GgufKeys::refuse(std::string_view key, std::string_view what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {} {}", gguf_.file, in_quotes(name(key)), what));
}

std::optional<std::int64_t> GgufKeys::find_extent(std::string_view key, std::int64_t layers) const {
  const std::string full = name(key);
  const auto found = gguf_.metadata.find(full);
  if (found == gguf_.metadata.end()) return std::nullopt;
  std::int64_t value = 0;
  if (layers > 0 && found->second.type == GgufType::array) {
    const std::vector<std::int64_t> list = *gguf_.find_integers(full);
    if (static_cast<std::int64_t>(list.size()) != layers)
      bad(key, fmt::format("has {} elements for {} layers", list.size(), layers));
    value = list[0];
    if (std::count(list.begin(), list.end(), value) != layers)
      refuse(key, "differs between layers, which is not supported");
  } else {
    value = *gguf_.find_integer(full);
  }
  if (value < 1 || value > kLargestExtent) bad(key, fmt::format("is {}; it should be 1 or more, and sane", value));
  return value;
}

std::int64_t GgufKeys::extent(std::string_view key, std::int64_t layers) const {
  const std::optional<std::int64_t> value = find_extent(key, layers);
  if (!value) bad(key, "is missing");
  return *value;
}

std::optional<double> GgufKeys::find_positive(std::string_view key) const {
  const std::optional<double> value = gguf_.find_number(name(key));
  if (value && !(std::isfinite(*value) && *value > 0))
    bad(key, fmt::format("is {}; it should be positive and finite", *value));
  return value;
}

void GgufKeys::refuse_unknown(std::span<const std::string_view> understood,
                              std::span<const std::string_view> more) const {
  for (auto at = gguf_.metadata.lower_bound(prefix_); at != gguf_.metadata.end() && at->first.starts_with(prefix_);
       ++at) {
    const std::string_view key = std::string_view(at->first).substr(prefix_.size());
    if (!among(understood, key) && !among(more, key))
      refuse(key, "is not understood; as it may change the result, it is not ignored");
  }
}

}  // namespace regard
