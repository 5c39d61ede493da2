#pragma once
// A model as it lies on disk: its configuration, its tokenizer and its weights, which stay mapped and as stored (law
// 8).

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/matmul.h"
#include "tensor/buffer.h"
#include "text/tokenizer_spec.h"
#include "weights/mapped_file.h"
#include "weights/model_config.h"

namespace regard {

struct StoredAs {
  std::int64_t tensors = 0, bytes = 0;
};

struct Checkpoint {
  ModelConfig config;
  TokenizerSpec tokenizer;
  // By GGUF name ("blk.0.attn_q.weight"): rows = outputs, cols = inputs; one-dimensional ones have one row. A linear
  // layer may have a ".bias" beside its ".weight". Every matrix the configuration calls for is here, with the shape it
  // calls for.
  std::map<std::string, Matrix, std::less<>> matrices;
  std::vector<std::shared_ptr<MappedFile>> mappings;  // what the matrices point into
  // And what had to be laid out anew, with the stored bytes of every number; narrow floats are widened (float8.h).
  std::vector<std::shared_ptr<Buffer<std::byte>>> reordered;
  std::vector<std::string> files;
  std::int64_t bytes = 0;            // of all files
  std::map<DType, StoredAs> stored;  // what the weights are stored as

  std::shared_ptr<Checkpoint> encoder;  // of an encoder-decoder, of which this is the decoder; it has no tokenizer

  const Matrix& matrix(std::string_view name) const;  // Error{not_found} naming tensor and file
  const Matrix* find(std::string_view name) const;    // nullptr when it is not there
  // Throws Error{io} when a file was cut or rewritten since loading: to be asked after computing with the weights.
  void check_intact() const;
};

// `path`: a .gguf file (the first one of a split set loads them all), or a Hugging Face folder (config.json,
// safetensors, a tokenizer). Errors: not_found, io, bad_input, unsupported (an architecture, tensor type or key of the
// configuration that regard does not know how to compute, by name).
Checkpoint load_checkpoint(const std::filesystem::path& path);

// The tokenizer alone, for a GGUF file or a Hugging Face folder of any architecture.
TokenizerSpec load_tokenizer(const std::filesystem::path& path);

}  // namespace regard
