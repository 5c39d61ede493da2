#include "weights/narrow_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "tensor/error.h"
#include "weights/float8.h"
#include "weights/gguf.h"
#include "weights/mxfp4.h"

namespace regard {
namespace {

constexpr std::string_view kMethods[] = {"fp8", "fbgemm_fp8", "compressed-tensors", "mxfp4"};

// The size of a scale's block, where the configuration says it.
std::optional<ScaleBlock> scale_block(const JsonPlace& config) {
  const std::optional<JsonPlace> quantization = config.find("quantization_config");
  if (!quantization) return std::nullopt;
  const std::string method = quantization->string_or("quant_method", "");
  if (std::find(std::begin(kMethods), std::end(kMethods), method) == std::end(kMethods))
    throw quantization->error(fmt::format("says quant_method '{}', which is not supported", method),
                              ErrorCode::unsupported,
                              "take the model's unquantised weights, or a GGUF of it (Q4_K_M, Q8_0...)");
  const std::optional<JsonPlace> size = quantization->find("weight_block_size");
  if (!size) return std::nullopt;
  const ScaleBlock block{size->at(std::size_t{0}).integer(), size->at(std::size_t{1}).integer()};
  if (block.rows < 1 || block.cols < 1) throw size->error("should be two numbers of 1 or more", ErrorCode::bad_input);
  return block;
}

StoredTensor kept(Checkpoint& checkpoint, const Tensor<float, 2>& values, std::vector<std::int64_t> shape,
                  std::size_t file) {
  const std::int64_t bytes = values.size() * static_cast<std::int64_t>(sizeof(float));
  auto& memory = *checkpoint.reordered.emplace_back(std::make_shared<Buffer<std::byte>>(bytes));
  if (bytes > 0) std::memcpy(memory.data(), values.data(), static_cast<std::size_t>(bytes));
  return {"F32", DType::f32, std::move(shape), memory.data(), bytes, file};
}

// MXFP4 as products take it: [..., rows, groups, 16] with a scale per group becomes rows of 32 groups.
StoredTensor ordered(Checkpoint& checkpoint, const std::string& where, const StoredTensor& blocks,
                     const StoredTensor& scales) {
  const std::int64_t bytes = scales.bytes * info(DType::mxfp4).block_bytes;  // of at most 17 files' size
  auto& memory = *checkpoint.reordered.emplace_back(std::make_shared<Buffer<std::byte>>(bytes));
  order_as_gguf(where, blocks, scales, memory.data());  // which looks at the shapes first
  std::vector<std::int64_t> shape = scales.shape;
  shape.back() *= kMxfp4Block;
  return {"MXFP4", DType::mxfp4, std::move(shape), memory.data(), bytes, blocks.file};
}

}  // namespace

void widen_narrow_weights(const JsonPlace& config, Checkpoint& checkpoint, StoredTensors& tensors) {
  const std::optional<ScaleBlock> block = scale_block(config);
  std::vector<std::string> gone;
  StoredTensors made;
  const auto find = [&](const std::string& name) -> const StoredTensor* {
    const auto at = tensors.find(name);
    return at == tensors.end() ? nullptr : &at->second;
  };
  for (const auto& [name, tensor] : tensors) {
    const std::string where = fmt::format("{}: the tensor {}", checkpoint.files[tensor.file], in_quotes(name));
    if (float8_from_name(tensor.format) && name.ends_with(".weight")) {
      const StoredTensor* scale = nullptr;
      for (const char* suffix : {"_scale_inv", "_scale"}) {
        if (scale == nullptr) scale = find(name + suffix);
        gone.push_back(name + suffix);
      }
      const std::string layer = name.substr(0, name.size() - std::strlen("weight"));
      for (const char* of_activations : {"input_scale", "activation_scale", "output_scale"})
        gone.push_back(layer + of_activations);
      made.emplace(name, kept(checkpoint, widen_float8(where, tensor, scale, block), tensor.shape, tensor.file));
    } else if (name.ends_with("_blocks") && tensor.format == "U8") {
      const std::string base = name.substr(0, name.size() - std::strlen("_blocks"));
      const StoredTensor* scales = find(base + "_scales");
      if (scales == nullptr) continue;
      gone.push_back(base + "_scales");
      made.emplace(name, ordered(checkpoint, where, tensor, *scales));
    }
  }
  for (auto& [name, tensor] : made) tensors[name] = tensor;
  for (const std::string& name : gone) tensors.erase(name);
}

}  // namespace regard
