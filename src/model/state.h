#pragma once
// What changes while a model runs: the key/value cache of every sequence, the rotary tables, scratch memory.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "attention/problem.h"
#include "kernels/rotary.h"
#include "model/relative_bias.h"
#include "model/tap.h"
#include "tensor/buffer.h"
#include "weights/model_config.h"

namespace regard {

// Keys (after rotary) and values, f32, in pages of 128 rows per layer: page -> [128, G, D] keys, [128, G, E] values.
class KeyValueCache {
 public:
  static constexpr std::int64_t kPageRows = 128;
  KeyValueCache(const ModelConfig& config, int sequences);

  int sequences() const { return static_cast<int>(lengths_.size()); }
  std::int64_t length(int sequence) const { return lengths_[sequence]; }
  // Room for rows up to `length`.
  void reserve(int sequence, std::int64_t length);
  // Where row `position` of a layer goes: [G, D] and [G, E].
  float* key(int sequence, std::int64_t layer, std::int64_t position);
  float* value(int sequence, std::int64_t layer, std::int64_t position);
  // What attention reads of that layer: `length` rows.
  Sequence view(int sequence, std::int64_t layer, std::int64_t length) const;
  void set_length(int sequence, std::int64_t length) { lengths_[sequence] = length; }
  std::int64_t bytes() const { return bytes_; }
  // Bytes that `tokens` rows of one sequence will take.
  static std::int64_t bytes_for(const ModelConfig& config, std::int64_t tokens);

 private:
  std::int64_t layers_, heads_, key_channels_, value_channels_;
  std::vector<std::int64_t> lengths_;
  // [sequence][layer] -> page pointers
  std::vector<std::vector<std::vector<const std::byte*>>> key_pages_, value_pages_;
  std::vector<Buffer<std::byte>> storage_;
  std::int64_t bytes_ = 0;
};

// Memory that one forward pass needs and the next may use again.
struct Scratch {
  std::vector<float> normed, q, k, v, z, branch, gate, up, result, router, expert_in, expert_out;
  std::vector<RowSoftmax> softmax;
  std::vector<QueryRow> query_rows;
  std::vector<std::int64_t> positions;
};

struct State {
  // `planned_length`: longest text expected; matters to rotary scalings that depend on it (0 = the model's context).
  explicit State(const ModelConfig& config, int sequences = 1, std::int64_t planned_length = 0);
  KeyValueCache cache;
  std::optional<KeyValueCache> source;  // what cross attention reads (model/source.h)
  RelativeBias relative_bias;
  RotaryTable rotary_global, rotary_local;
  Scratch scratch;
};

}  // namespace regard
