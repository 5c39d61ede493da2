#pragma once
// All numbers of a model that training changes, in one piece of f32 memory: what an optimizer steps over, what a
// checkpoint holds, and, with the same layout, their gradients.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/buffer.h"
#include "weights/checkpoint.h"
#include "weights/expected_tensors.h"

namespace regard {

class Parameters {
 public:
  // All that the configuration calls for and that is not optional, in the order of expected_tensors(); zeros.
  explicit Parameters(const ModelConfig& config);
  // The tensors of a model as they are, widened to f32; or zeros in their place.
  enum class From { values, zeros };
  explicit Parameters(const Checkpoint& checkpoint, From from = From::values);

  struct Place {
    std::string name;  // "blk.0.attn_q.weight"
    std::int64_t begin = 0, rows = 0, cols = 0;
    bool vector = false;
  };
  const std::vector<Place>& places() const { return places_; }
  std::span<float> values() { return {memory_.data(), static_cast<std::size_t>(memory_.size())}; }
  std::span<const float> values() const { return {memory_.data(), static_cast<std::size_t>(memory_.size())}; }
  // Null data where there is no such tensor.
  View<float, 2> find(std::string_view name);
  // Error{not_found} naming it.
  View<float, 2> at(std::string_view name);

  // These numbers as a model: it points into them, so they must outlive it. Norms and biases are copied, so a model is
  // made again after each step.
  Checkpoint checkpoint(const ModelConfig& config, const TokenizerSpec& tokenizer) const;

 private:
  void add(std::string name, std::int64_t rows, std::int64_t cols, bool vector);
  std::vector<Place> places_;
  Buffer<float> memory_;
  std::int64_t size_ = 0;
};

}  // namespace regard
