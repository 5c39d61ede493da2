#include "weights/default_model.h"

#include <unistd.h>

#include <array>
#include <fstream>

#include "tensor/error.h"
#include "weights/catalogue.h"
#include "weights/new_file.h"
#include "weights/sha256.h"

// The assembler copies the files (REGARD_MODELS is the folder models/ of the source).
#define REGARD_EMBED(symbol, file)                                                                         \
  __asm__(".section .rodata\n.balign 64\n" #symbol "_begin:\n.incbin \"" REGARD_MODELS file "\"\n" #symbol \
          "_end:\n"                                                                                        \
          ".previous\n");                                                                                  \
  extern "C" const char symbol##_begin[], symbol##_end[]

REGARD_EMBED(regard_default_config, "/default/config.json");
REGARD_EMBED(regard_default_weights, "/default/model.safetensors");
REGARD_EMBED(regard_default_tokenizer, "/default/tokenizer.json");

namespace regard {
namespace fs = std::filesystem;

std::span<const EmbeddedFile> default_model_files() {
  static const std::array<EmbeddedFile, 3> kFiles = {
      {{"config.json", {regard_default_config_begin, regard_default_config_end}},
       {"model.safetensors", {regard_default_weights_begin, regard_default_weights_end}},
       {"tokenizer.json", {regard_default_tokenizer_begin, regard_default_tokenizer_end}}}};
  return kFiles;
}

namespace {

bool holds(const fs::path& path, std::string_view bytes) {
  std::error_code error;
  if (fs::file_size(path, error) != bytes.size() || error) return false;
  std::ifstream file(path, std::ios::binary);
  const std::string found((std::istreambuf_iterator<char>(file)), {});
  return found == bytes;
}

}  // namespace

std::int64_t default_model_bytes() {
  std::int64_t sum = 0;
  for (const EmbeddedFile& file : default_model_files()) sum += std::ssize(file.bytes);
  return sum;
}

// Programs of different versions do not take each other's away.
fs::path default_model_place() {
  Sha256 sum;
  for (const EmbeddedFile& file : default_model_files()) sum.update(file.bytes.data(), file.bytes.size());
  return cache_folder() / "models" / fmt::format("{}-{}", kDefaultModel, sum.hex().substr(0, 12));
}

fs::path default_model_folder() {
  const fs::path folder = default_model_place();
  for (const EmbeddedFile& file : default_model_files()) {
    const fs::path path = folder / file.name;
    if (holds(path, file.bytes)) continue;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail_to_write(folder, error.value());
    // Whole or not at all, whoever else does the same now.
    const fs::path beside = path.string() + fmt::format(".{}", ::getpid());
    {
      NewFile out(beside);
      out.write(file.bytes.data(), file.bytes.size());
      out.finish();
    }
    fs::rename(beside, path, error);
    if (error) fail_to_write(path, error.value());
  }
  return folder;
}

}  // namespace regard
