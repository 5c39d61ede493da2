#include "weights/checkpoint.h"

#include <fmt/format.h>

#include "tensor/error.h"
#include "weights/folder_tokenizer.h"
#include "weights/gguf.h"
#include "weights/gguf_checkpoint.h"
#include "weights/gguf_tokenizer.h"
#include "weights/hf_checkpoint.h"

namespace regard {

namespace {

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
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
  Checkpoint checkpoint = is_folder(path) ? load_hf_checkpoint(path) : load_gguf_checkpoint(path);
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
