#include "weights/gguf_checkpoint.h"

#include <algorithm>
#include <cmath>

#include "tensor/error.h"
#include "weights/assembly.h"
#include "weights/gguf.h"
#include "weights/gguf_config.h"
#include "weights/gguf_family.h"
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

// Divisors of the angle per pair.
std::vector<double> divisors(Assembly& assembly, const std::string& tensor, std::int64_t pairs,
                             const std::string& file) {
  const std::vector<float> values = assembly.values({tensor, 1, pairs, true, false}, {tensor});
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(std::isfinite(values[i]) && values[i] > 0))
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: '{}' has the value {} at {}; it should be positive", file, tensor, values[i], i));
  return {values.begin(), values.end()};
}

// How files carry the scalings of Llama 3 (conversion/llama.py, generate_extra_tensors) and Phi 3 (conversion/phi.py).
void read_divisors(Assembly& assembly, ModelConfig& c, const GgufFile& gguf) {
  RotaryConfig& rotary = c.rotary_global;
  const bool shared = c.rotary_local.base == rotary.base;  // one rotary for all layers
  const std::int64_t pairs = rotary.dim / 2;
  if (assembly.has("rope_freqs.weight"))
    rotary.frequency_divisors = divisors(assembly, "rope_freqs.weight", pairs, gguf.file);
  if (c.family == "phi3" && assembly.has("rope_factors_long.weight")) {
    rotary.scaling = RotaryScaling::longrope;
    rotary.long_factors = divisors(assembly, "rope_factors_long.weight", pairs, gguf.file);
    rotary.short_factors = divisors(assembly, "rope_factors_short.weight", pairs, gguf.file);
  } else if (c.family == "phi3" && rotary.attention_factor != 0) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: 'phi3.rope.scaling.attn_factor' is {}, but there is no 'rope_factors_long.weight'",
                            gguf.file, rotary.attention_factor));
  }
  if (shared) c.rotary_local = rotary;
}

// Layers with a router are mixtures.
void find_mixtures(Assembly& assembly, ModelConfig& c) {
  for (std::size_t l = 0; l < c.mixture.layers.size(); ++l) {
    const ExpectedTensor router = expected_router(c, static_cast<std::int64_t>(l));
    c.mixture.layers[l] = assembly.has(router.name);
    if (c.mixture.layers[l]) assembly.check_router(router, {router.name});
  }
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
  if (config.head) config.tied_head = !tensors.contains("output.weight");
  if (!tensors.contains("token_types.weight")) config.token_types = 0;  // of bert, DistilBERT has none
  if (config.tied_head && tensors.contains("output.bias"))
    throw Error(ErrorCode::bad_input, fmt::format("{}: there is an 'output.bias' but no 'output.weight'", gguf.file));
  Assembly assembly(checkpoint, tensors);
  find_mixtures(assembly, config);
  for (const ExpectedTensor& expected : expected_tensors(config))
    if (expected.name != "rope_freqs.weight") assembly.take(expected, gguf_part(config, tensors, expected.name));
  if (config.rotary) read_divisors(assembly, config, gguf);
  assembly.refuse_leftovers();
  checkpoint.tokenizer = tokenizer_from_gguf(gguf);
  return checkpoint;
}

}  // namespace regard
