#include "weights/hf_checkpoint.h"
#include "weights/folder_tokenizer.h"

#include <fmt/ranges.h>

#include <cmath>

#include "tensor/error.h"
#include "tensor/half.h"
#include "weights/assembly.h"
#include "weights/checked_json.h"
#include "weights/gguf.h"
#include "weights/hf_family.h"
#include "weights/narrow_weights.h"
#include "weights/safetensors.h"

namespace regard {
namespace {

// Base models ("BertModel") and older files leave out the prefix, or its first parts.
std::string_view prefix_in(const HfFamily& family, const ModelConfig& config, const StoredTensors& tensors) {
  for (std::string_view prefix = family.prefix;; prefix.remove_prefix(prefix.find('.') + 1)) {
    if (tensors.contains(hf_part(family, config, prefix, "token_embd.weight").tensor)) return prefix;
    if (prefix.empty()) return family.prefix;
  }
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

// A router has a row per expert; without one that fits, there is no telling how many there may be.
void check_experts(const HfFamily& family, const ModelConfig& config, std::string_view prefix,
                   const StoredTensors& tensors, const std::string& file) {
  for (std::int64_t l = 0; l < config.layers; ++l) {
    if (!config.mixture.at(l)) continue;
    const std::string router = hf_part(family, config, prefix, fmt::format("blk.{}.ffn_gate_inp.weight", l)).tensor;
    const auto at = tensors.find(router);
    if (at == tensors.end())
      throw Error(ErrorCode::bad_input, fmt::format("{}: the tensor {} is missing", file, in_quotes(router)));
    const std::vector<std::int64_t>& shape = at->second.shape;
    if (shape.size() != 2 || shape[0] != config.mixture.experts || shape[1] != config.width)
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: the tensor {} has the shape [{}], but the configuration calls for {} rows of {}",
                              file, in_quotes(router), fmt::join(shape, ", "), config.mixture.experts, config.width));
  }
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
void assemble(const HfFamily& family, Assembly& assembly, Checkpoint& checkpoint, const StoredTensors& tensors) {
  ModelConfig& config = checkpoint.config;
  config.family = family.model_type;
  const std::string_view prefix = prefix_in(family, config, tensors);
  if (config.head) config.head = family.head.empty() || tensors.contains(family.head);
  if (!family.untied.empty() && tensors.contains(family.untied)) config.tied_head = false;
  check_experts(family, config, prefix, tensors, checkpoint.files.front());
  for (const ExpectedTensor& expected : expected_tensors(config))
    assembly.take(expected, find_part(family, config, prefix, expected.name, tensors));
  if (config.sinusoidal) {
    checkpoint.matrices.emplace("position_embd.weight", sinusoidal_positions(config, checkpoint));
    assembly.ignore(std::string(family.prefix) + "embed_positions.weight");  // older files store it
  }
  for (const char* name : {"output.weight", "output.bias", "token_embd.weight"}) {  // some files hold them twice
    const std::string stored = hf_part(family, config, prefix, name).tensor;
    if (config.tied_head) assembly.ignore(stored);
    const std::size_t dot = stored.rfind('.');
    if (std::string_view(name) == "output.bias") assembly.ignore(stored.substr(0, dot) + ".decoder.bias");
  }
  if (family.encoder != nullptr || config.cross_attention || !config.head)
    assembly.ignore(std::string(family.prefix) + "embed_tokens.weight");  // the shared embedding again
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
  assemble(family, assembly, checkpoint, tensors);
  if (family.encoder != nullptr) {
    Checkpoint& encoder = *checkpoint.encoder;
    encoder.mappings = checkpoint.mappings;
    encoder.files = checkpoint.files;
    Assembly of_encoder(encoder, assembly);
    assemble(*family.encoder, of_encoder, encoder, tensors);
  }
  for (const auto& [name, tensor] : tensors)
    if (hf_ignores(name)) assembly.ignore(name);
  assembly.refuse_leftovers();
  checkpoint.tokenizer = tokenizer_of(folder, config.vocabulary);
  return checkpoint;
}

}  // namespace regard
