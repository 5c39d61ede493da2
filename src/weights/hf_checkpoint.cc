#include "weights/hf_checkpoint.h"

#include <algorithm>

#include "tensor/error.h"
#include "tensor/half.h"
#include "weights/assembly.h"
#include "weights/checked_json.h"
#include "weights/hf_family.h"
#include "weights/safetensors.h"

namespace regard {
namespace {

// Base models ("BertModel") are stored without the prefix that a model with a head puts before their tensors.
std::string_view prefix_in(const HfFamily& family, const ModelConfig& config, const StoredTensors& tensors) {
  for (const std::string_view prefix : {family.prefix, std::string_view()})
    if (tensors.contains(hf_part(family, config, prefix, "token_embd.weight").tensor)) return prefix;
  return family.prefix;
}

// A scale that was rounded to the type of what it scales (Gemma3TextScaledWordEmbedding).
float rounded_to(DType dtype, float scale) {
  if (dtype == DType::bf16) return f32_from_bf16(bf16_from_f32(scale));
  if (dtype == DType::f16) return f32_from_f16(f16_from_f32(scale));
  return scale;
}

// A folder without a tokenizer can still be run on ids; they are written as <17>.
TokenizerSpec ids_alone(std::int64_t vocabulary) {
  TokenizerSpec spec;
  spec.pre = "gpt-2";
  for (std::int64_t id = 0; id < vocabulary; ++id) spec.pieces.push_back(fmt::format("<{}>", id));
  spec.types.assign(spec.pieces.size(), TokenType::control);
  return spec;
}

}  // namespace

Checkpoint load_hf_checkpoint(const std::filesystem::path& folder) {
  const JsonPlace json = read_json(folder / "config.json");
  const HfFamily& family = hf_family(json);
  HfKeys keys(json);
  Checkpoint checkpoint;
  ModelConfig& config = checkpoint.config = family.configure(keys);
  keys.refuse_unknown();
  config.family = family.model_type;
  config.name = folder.filename().string();

  const SafetensorsFiles files = read_safetensors(folder);
  checkpoint.mappings = files.mappings;
  for (const auto& mapping : files.mappings) {
    checkpoint.files.push_back(mapping->path().string());
    checkpoint.bytes += mapping->size();
  }
  const StoredTensors& tensors = files.tensors;
  if (config.layers > static_cast<std::int64_t>(tensors.size()))
    keys.bad("num_hidden_layers", fmt::format("is {}, but there are only {} tensors", config.layers, tensors.size()));
  const std::string_view prefix = prefix_in(family, config, tensors);
  config.head = family.head.empty() || tensors.contains(family.head);

  Assembly assembly(checkpoint, tensors);
  for (const ExpectedTensor& expected : expected_tensors(config))
    assembly.take(expected, hf_part(family, config, prefix, expected.name));
  for (const auto& [name, tensor] : tensors)
    if (hf_ignores(name)) assembly.ignore(name);
  if (config.head && config.tied_head)  // some files hold the tied matrix and its bias twice
    for (const char* twin : {"output.weight", "output.bias"}) {
      assembly.ignore(hf_part(family, config, prefix, twin).tensor);
      assembly.ignore("cls.predictions.decoder.bias");
      assembly.ignore("lm_head.decoder.bias");
    }
  assembly.refuse_leftovers();
  if (family.rounds_embedding_scale)
    config.embedding_scale = rounded_to(checkpoint.matrix("token_embd.weight").dtype, config.embedding_scale);
  checkpoint.tokenizer = ids_alone(config.vocabulary);
  return checkpoint;
}

}  // namespace regard
