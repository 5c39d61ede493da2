#include "weights/checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "tensor/error.h"
#include "weights/folder_tokenizer.h"
#include "weights/gguf.h"
#include "weights/gguf_config.h"
#include "weights/gguf_shards.h"
#include "weights/gguf_tokenizer.h"

namespace regard {

namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Matrix matrix_from(const GgufShards& shards, const GgufShards::Place& place, const ExpectedTensor& expected) {
  const GgufTensor& tensor = *place.tensor;
  const std::vector<std::int64_t> shape =
      expected.vector ? std::vector{expected.cols} : std::vector{expected.cols, expected.rows};
  if (tensor.shape != shape)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the tensor {} has the shape {}, but the configuration calls for {}",
                            shards.file(place), in_quotes(expected.name), shape_text(tensor.shape), shape_text(shape)));
  if (!tensor.type->dtype)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: the tensor {} is stored as {}, which is not supported", shards.file(place),
                            in_quotes(expected.name), tensor.type->name),
                "supported are F32 F16 BF16 F64 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS");
  Matrix m;
  m.dtype = *tensor.type->dtype;
  m.rows = expected.rows;
  m.cols = expected.cols;
  m.row_stride = row_bytes(m.dtype, m.cols);
  m.data = shards.mapping(place).data() + tensor.offset;
  return m;
}

// Divisors of the angle per pair: how Llama 3 files carry their scaling (conversion/llama.py, generate_extra_tensors).
std::vector<double> divisors_from(const Matrix& m, const std::string& file) {
  if (m.dtype != DType::f32)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: 'rope_freqs.weight' should be F32 but is {}", file, info(m.dtype).name));
  std::vector<double> divisors;
  for (std::int64_t i = 0; i < m.cols; ++i) {
    float value;
    std::memcpy(&value, m.data + i * 4, 4);
    if (!(std::isfinite(value) && value > 0))
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: 'rope_freqs.weight' has the value {} at {}; it should be positive", file, value, i));
    divisors.push_back(value);
  }
  return divisors;
}

void refuse_leftovers(const GgufShards& shards, const Checkpoint& checkpoint) {
  for (const auto& [name, place] : shards.tensors)
    if (!checkpoint.matrices.contains(name) && name != "rope_freqs.weight")
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: the tensor {} is not understood; as it may change the result, it is not ignored",
                              shards.file(place), in_quotes(name)));
}

}  // namespace

const Matrix* Checkpoint::find(std::string_view name) const {
  const auto at = matrices.find(name);
  return at == matrices.end() ? nullptr : &at->second;
}

const Matrix& Checkpoint::matrix(std::string_view name) const {
  if (const Matrix* m = find(name)) return *m;
  throw Error(ErrorCode::not_found,
              fmt::format("{}: there is no tensor {}", files.empty() ? "checkpoint" : files.front(), in_quotes(name)));
}

void Checkpoint::check_intact() const {
  for (const auto& mapping : mappings) mapping->check_intact();
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  const GgufShards shards(path);
  const GgufFile& gguf = shards.first();
  Checkpoint checkpoint;
  checkpoint.config = config_from_gguf(gguf, static_cast<std::int64_t>(shards.tensors.size()));
  checkpoint.mappings = shards.mappings;
  for (const auto& mapping : shards.mappings) {
    checkpoint.files.push_back(mapping->path().string());
    checkpoint.bytes += mapping->size();
  }
  ModelConfig& config = checkpoint.config;
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    const auto at = shards.tensors.find(expected.name);
    if (at == shards.tensors.end()) {
      if (expected.optional) continue;
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: the tensor {} is missing", gguf.file, in_quotes(expected.name)));
    }
    const Matrix m = matrix_from(shards, at->second, expected);
    StoredAs& stored = checkpoint.stored[m.dtype];
    ++stored.tensors;
    stored.bytes += at->second.tensor->bytes;
    if (expected.name == "rope_freqs.weight")
      config.rotary_global.frequency_divisors = config.rotary_local.frequency_divisors = divisors_from(m, gguf.file);
    else
      checkpoint.matrices.emplace(expected.name, m);
  }
  refuse_leftovers(shards, checkpoint);
  config.tied_head = checkpoint.find("output.weight") == nullptr;
  if (config.tied_head && checkpoint.find("output.bias") != nullptr)
    throw Error(ErrorCode::bad_input, fmt::format("{}: there is an 'output.bias' but no 'output.weight'", gguf.file));
  checkpoint.tokenizer = tokenizer_from_gguf(gguf);
  checkpoint.check_intact();
  return checkpoint;
}

TokenizerSpec load_tokenizer(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return tokenizer_from_folder(path);
  const MappedFile file(path);
  TokenizerSpec spec = tokenizer_from_gguf(read_gguf(file));
  file.check_intact();
  return spec;
}

}  // namespace regard
