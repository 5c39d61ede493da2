#include "model/state.h"

#include "tensor/error.h"

namespace regard {

KeyValueCache::KeyValueCache(const ModelConfig& config, int sequences)
    : layers_(config.layers),
      heads_(config.kv_heads),
      key_channels_(config.head_dim),
      value_channels_(config.value_dim),
      lengths_(static_cast<std::size_t>(sequences), 0),
      key_pages_(static_cast<std::size_t>(sequences)),
      value_pages_(static_cast<std::size_t>(sequences)) {
  if (sequences < 1)
    throw Error(ErrorCode::bad_input, fmt::format("a cache for {} sequences", sequences), "use 1 or more");
  for (auto& layers : key_pages_) layers.resize(static_cast<std::size_t>(layers_));
  for (auto& layers : value_pages_) layers.resize(static_cast<std::size_t>(layers_));
}

void KeyValueCache::reserve(int sequence, std::int64_t length) {
  constexpr auto f = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t key_bytes = kPageRows * heads_ * key_channels_ * f;
  const std::int64_t value_bytes = kPageRows * heads_ * value_channels_ * f;
  if (layers_ == 0) return;
  while (std::ssize(key_pages_[sequence].front()) * kPageRows < length) {
    // A page of every layer in one piece, for large pages.
    const Buffer<std::byte>& piece = storage_.emplace_back(layers_ * (key_bytes + value_bytes));
    bytes_ += piece.size();
    const std::byte* at = piece.data();
    for (std::int64_t layer = 0; layer < layers_; ++layer, at += key_bytes + value_bytes) {
      key_pages_[sequence][layer].push_back(at);
      value_pages_[sequence][layer].push_back(at + key_bytes);
    }
  }
}

// Pages are held as read-only, as attention wants them; the cache owns them and may write.
float* KeyValueCache::key(int sequence, std::int64_t layer, std::int64_t position) {
  const std::byte* page = key_pages_[sequence][layer][position / kPageRows];
  return reinterpret_cast<float*>(const_cast<std::byte*>(page)) + position % kPageRows * heads_ * key_channels_;
}

float* KeyValueCache::value(int sequence, std::int64_t layer, std::int64_t position) {
  const std::byte* page = value_pages_[sequence][layer][position / kPageRows];
  return reinterpret_cast<float*>(const_cast<std::byte*>(page)) + position % kPageRows * heads_ * value_channels_;
}

Sequence KeyValueCache::view(int sequence, std::int64_t layer, std::int64_t length) const {
  const auto rows = [&](const std::vector<const std::byte*>& pages, std::int64_t channels) {
    constexpr std::int64_t f = sizeof(float);
    return Rows{DType::f32, pages.data(), kPageRows, heads_ * channels * f, channels * f, f};
  };
  Sequence s;
  s.length = length;
  s.k = rows(key_pages_[sequence][layer], key_channels_);
  s.v = rows(value_pages_[sequence][layer], value_channels_);
  return s;
}

std::int64_t KeyValueCache::bytes_for(const ModelConfig& c, std::int64_t tokens) {
  const std::int64_t pages = (tokens + kPageRows - 1) / kPageRows;
  return pages * kPageRows * c.layers * c.kv_heads * (c.head_dim + c.value_dim) *
         static_cast<std::int64_t>(sizeof(float));
}

State::State(const ModelConfig& config, int sequences, std::int64_t planned_length) : cache(config, sequences) {
  if (config.cross_attention) source.emplace(config, sequences);
  if (!config.rotary) return;
  const std::int64_t length = planned_length > 0 ? planned_length : config.context;
  rotary_global = RotaryTable(config.rotary_global, length);
  rotary_local = RotaryTable(config.rotary_local, length);
}

}  // namespace regard
