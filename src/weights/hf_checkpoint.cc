#include "weights/hf_checkpoint.h"

#include <fmt/core.h>

#include <cmath>

#include "tensor/error.h"
#include "tensor/half.h"
#include "weights/assembly.h"
#include "weights/checked_json.h"
#include "weights/folder_tokenizer.h"
#include "weights/hf_family.h"
#include "weights/narrow_weights.h"
#include "weights/safetensors.h"

namespace regard {
namespace {

// Base models ("BertModel") and older files leave out the prefix, or its first parts.
std::string_view prefix_in(const HfFamily& family, const ModelConfig& config, const StoredTensors& tensors) {
  for (std::string_view prefix = family.prefix;; prefix.remove_prefix(prefix.find('.') + 1)) {
    if (tensors.contains(hf_part(family, config, prefix, "token_embd.weight").tensor)) return prefix;
    if (prefix.empty()) break;
  }
  constexpr std::string_view kOther = "transformer.";  // of Llama's and Qwen's ForQuestionAnswering
  return tensors.contains(hf_part(family, config, kOther, "token_embd.weight").tensor) ? kOther : family.prefix;
}

// Where a canonical tensor lies in this folder, by the names that have changed over the years.
TensorPart find_part(const HfFamily& family, const ModelConfig& config, std::string_view prefix,
                     std::string_view canonical, const StoredTensors& tensors) {
  TensorPart part = hf_part(family, config, prefix, canonical);
  if (tensors.contains(part.tensor)) return part;
  if (tensors.contains(part.tensor + "_blocks")) {  // MXFP4: outputs are rows
    part.tensor += "_blocks";
    part.turned = false;
  }
  for (const auto& [now, once] :
       {std::pair("LayerNorm.weight", "LayerNorm.gamma"), {"LayerNorm.bias", "LayerNorm.beta"}}) {
    if (!part.tensor.ends_with(now)) continue;
    const std::string older = part.tensor.substr(0, part.tensor.size() - std::string_view(now).size()) + once;
    if (tensors.contains(older)) part.tensor = older;
  }
  return part;
}

// A scale that was rounded to the type of what it scales (Gemma3TextScaledWordEmbedding).
float rounded_to(DType dtype, float scale) {
  if (dtype == DType::bf16) return f32_from_bf16(bf16_from_f32(scale));
  if (dtype == DType::f16) return f32_from_f16(f16_from_f32(scale));
  return scale;
}

// A folder without a tokenizer can still be run on ids; they are written as <17>.
TokenizerSpec tokenizer_of(const std::filesystem::path& folder, std::int64_t vocabulary) {
  try {
    return tokenizer_from_folder(folder);
  } catch (const Error& error) {
    if (error.code != ErrorCode::not_found) throw;
  }
  TokenizerSpec spec;
  spec.pre = "gpt-2";
  for (std::int64_t id = 0; id < vocabulary; ++id) spec.pieces.push_back(fmt::format("<{}>", id));
  spec.types.assign(spec.pieces.size(), TokenType::control);
  return spec;
}

// sin in the first half of the channels, cos in the second (MarianSinusoidalPositionalEmbedding).
Matrix sinusoidal_positions(const ModelConfig& c, Checkpoint& checkpoint) {
  const std::int64_t rows = c.context, half = (c.width + 1) / 2;
  auto& memory = *checkpoint.reordered.emplace_back(std::make_shared<Buffer<std::byte>>(rows * c.width * 4));
  auto* to = reinterpret_cast<float*>(memory.data());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < c.width; ++i) {
      const std::int64_t pair = i < half ? i : i - half;
      const double angle =
          static_cast<double>(row) * std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(c.width));
      *to++ = static_cast<float>(i < half ? std::sin(angle) : std::cos(angle));
    }
  return {DType::f32, rows, c.width, memory.data(), c.width * 4};
}

// The encoder of an encoder-decoder, a decoder, or a model that is either alone.
void assemble(const HfFamily& family, HfHead head, Assembly& assembly, Checkpoint& checkpoint,
              const StoredTensors& tensors) {
  ModelConfig& config = checkpoint.config;
  config.family = family.model_type;
  const std::string_view prefix = prefix_in(family, config, tensors);
  const auto stored = [&](std::string_view name) {
    return tensors.contains(hf_part(family, config, prefix, name).tensor);
  };
  if (config.head && head == HfHead::other_task) config.head = stored("output.weight") || stored("output.bias");
  if (config.head) config.head = family.head.empty() || tensors.contains(family.head);
  if (config.head && head == HfHead::none && !config.tied_head) config.head = stored("output.weight");
  if (head == HfHead::other_task)
    for (const auto& [name, tensor] : tensors)
      if (is_of_other_task(name) && !(config.head && name.starts_with("head."))) assembly.ignore(name);
  if (!family.untied.empty() && tensors.contains(family.untied)) config.tied_head = false;
  const auto part = [&](const std::string& name) { return find_part(family, config, prefix, name, tensors); };
  for (std::int64_t l = 0; l < config.layers; ++l)
    if (config.mixture.at(l)) {
      const ExpectedTensor router = expected_router(config, l);
      assembly.check_router(router, part(router.name));
    }
  for (const ExpectedTensor& expected : expected_tensors(config)) assembly.take(expected, part(expected.name));
  if (config.sinusoidal) checkpoint.matrices.emplace("position_embd.weight", sinusoidal_positions(config, checkpoint));
  if (config.tied_head) assembly.ignore_twin(part("output.weight").tensor, part("token_embd.weight").tensor);
  for (const auto& [twin, of] : family.twins) assembly.ignore_twin(std::string(twin), std::string(of));
  for (const auto& [name, tensor] : tensors)
    if (hf_ignores(family, name)) assembly.ignore(name);
  if (family.rounds_embedding_scale)
    config.embedding_scale = rounded_to(checkpoint.matrix("token_embd.weight").dtype, config.embedding_scale);
}

}  // namespace

Checkpoint load_hf_checkpoint(const std::filesystem::path& folder) {
  const JsonPlace json = read_json(folder / "config.json");
  const HfFamily& family = hf_family(json);
  SafetensorsFiles files = read_safetensors(folder);
  HfKeys keys(json, std::ssize(files.tensors));
  Checkpoint checkpoint;
  ModelConfig& config = checkpoint.config = family.configure(keys);
  if (family.encoder != nullptr) {
    checkpoint.encoder = std::make_shared<Checkpoint>();
    checkpoint.encoder->config = family.encoder->configure(keys);
  }
  keys.expect("is_causal", family.encoder != nullptr || config.causal);
  keys.refuse_unknown();
  config.name = folder.filename().string();

  checkpoint.mappings = files.mappings;
  for (const auto& mapping : files.mappings) {
    checkpoint.files.push_back(mapping->path().string());
    checkpoint.bytes += mapping->size();
  }
  StoredTensors& tensors = files.tensors;
  widen_narrow_weights(json, checkpoint, tensors);

  Assembly assembly(checkpoint, tensors);
  const HfHead head = hf_head(json);
  assemble(family, head, assembly, checkpoint, tensors);
  if (family.encoder != nullptr) {
    Checkpoint& encoder = *checkpoint.encoder;
    encoder.mappings = checkpoint.mappings;
    encoder.files = checkpoint.files;
    Assembly of_encoder(encoder, assembly);
    assemble(*family.encoder, head, of_encoder, encoder, tensors);
  }
  assembly.refuse_leftovers();
  checkpoint.tokenizer = tokenizer_of(folder, config.vocabulary);
  return checkpoint;
}

}  // namespace regard
