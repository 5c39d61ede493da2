#include "weights/gguf_checkpoint.h"

#include <algorithm>
#include <cmath>

#include "tensor/error.h"
#include "weights/assembly.h"
#include "weights/gguf.h"
#include "weights/gguf_config.h"
#include "weights/gguf_shards.h"
#include "weights/gguf_tokenizer.h"

namespace regard {
namespace {

// The tensors of all shards, axes in row-major order.
StoredTensors stored_tensors(const GgufShards& shards) {
  StoredTensors all;
  for (const auto& [name, place] : shards.tensors) {
    StoredTensor stored;
    stored.format = place.tensor->type->name;
    stored.dtype = place.tensor->type->dtype;
    stored.shape.assign(place.tensor->shape.rbegin(), place.tensor->shape.rend());
    stored.data = shards.mapping(place).data() + place.tensor->offset;
    stored.bytes = place.tensor->bytes;
    stored.file = place.shard;
    all.emplace(name, std::move(stored));
  }
  return all;
}

// Divisors of the angle per pair: how Llama 3 files carry their scaling (conversion/llama.py, generate_extra_tensors).
std::vector<double> divisors(Assembly& assembly, const ExpectedTensor& expected, const std::string& file) {
  const std::vector<float> values = assembly.values(expected, {expected.name});
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(std::isfinite(values[i]) && values[i] > 0))
      throw Error(
          ErrorCode::bad_input,
          fmt::format("{}: 'rope_freqs.weight' has the value {} at {}; it should be positive", file, values[i], i));
  return {values.begin(), values.end()};
}

}  // namespace

Checkpoint load_gguf_checkpoint(const std::filesystem::path& path) {
  const GgufShards shards(path);
  const GgufFile& gguf = shards.first();
  Checkpoint checkpoint;
  ModelConfig& config = checkpoint.config = config_from_gguf(gguf, static_cast<std::int64_t>(shards.tensors.size()));
  checkpoint.mappings = shards.mappings;
  for (const auto& mapping : shards.mappings) {
    checkpoint.files.push_back(mapping->path().string());
    checkpoint.bytes += mapping->size();
  }
  const StoredTensors tensors = stored_tensors(shards);
  config.tied_head = !tensors.contains("output.weight");
  if (config.tied_head && tensors.contains("output.bias"))
    throw Error(ErrorCode::bad_input, fmt::format("{}: there is an 'output.bias' but no 'output.weight'", gguf.file));
  Assembly assembly(checkpoint, tensors);
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    if (expected.name != "rope_freqs.weight")
      assembly.take(expected, {expected.name});
    else if (assembly.has(expected.name))
      config.rotary_global.frequency_divisors = divisors(assembly, expected, gguf.file);
  }
  if (config.rotary_local.base == config.rotary_global.base)  // one rotary for all layers
    config.rotary_local.frequency_divisors = config.rotary_global.frequency_divisors;
  assembly.refuse_leftovers();
  checkpoint.tokenizer = tokenizer_from_gguf(gguf);
  return checkpoint;
}

}  // namespace regard
