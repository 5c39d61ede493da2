#include "weights/default_model.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <random>

#include "tensor/error.h"
#include "weights/home_folder.h"
#include "weights/new_file.h"
#include "weights/sha256.h"

// The assembler copies the files (REGARD_MODELS is the folder models/ of the source) and counts their bytes.
#define REGARD_OBJECT(symbol, size) \
  ".globl " symbol "\n.hidden " symbol "\n.type " symbol ", @object\n.size " symbol ", " size "\n" symbol ":\n"
#define REGARD_EMBED(symbol, file)                                                                     \
  __asm__(".section .rodata.regard, \"a\", @progbits\n.balign 64\n" REGARD_OBJECT(                     \
      #symbol, ".L" #symbol " - " #symbol) ".incbin \"" REGARD_MODELS file                             \
                                           "\"\n"                                                      \
                                           ".L" #symbol ":\n.balign 8\n" REGARD_OBJECT(                \
                                               #symbol "_bytes", "8") ".quad .L" #symbol " - " #symbol \
                                                                      "\n.previous\n");                \
  extern "C" const char symbol[];                                                                      \
  extern "C" const std::uint64_t symbol##_bytes

REGARD_EMBED(regard_default_config, "/default/config.json");
REGARD_EMBED(regard_default_weights, "/default/model.safetensors");
REGARD_EMBED(regard_default_tokenizer, "/default/tokenizer.json");

namespace regard {
namespace fs = std::filesystem;

std::span<const EmbeddedFile> default_model_files() {
  static const std::array<EmbeddedFile, 3> kFiles = {
      {{"config.json", {regard_default_config, regard_default_config_bytes}},
       {"model.safetensors", {regard_default_weights, regard_default_weights_bytes}},
       {"tokenizer.json", {regard_default_tokenizer, regard_default_tokenizer_bytes}}}};
  return kFiles;
}

std::int64_t default_model_bytes() {
  std::int64_t sum = 0;
  for (const EmbeddedFile& file : default_model_files()) sum += std::ssize(file.bytes);
  return sum;
}

fs::path default_model_place() {
  Sha256 sum;
  for (const EmbeddedFile& file : default_model_files()) sum.update(file.bytes.data(), file.bytes.size());
  return cache_folder() / "models" / fmt::format("{}-{}", kDefaultModel, sum.hex().substr(0, 12));
}

namespace {

bool holds(const fs::path& path, std::string_view bytes) {
  std::error_code error;
  if (fs::file_size(path, error) != bytes.size() || error) return false;
  std::ifstream file(path, std::ios::binary);
  const std::string found((std::istreambuf_iterator<char>(file)), {});
  return found == bytes;
}

bool holds_all(const fs::path& folder) {
  return std::ranges::all_of(default_model_files(),
                             [&](const EmbeddedFile& file) { return holds(folder / file.name, file.bytes); });
}

// A new folder of a name that nobody else has; nothing, and the reason, where none can be made.
std::optional<fs::path> new_folder(const fs::path& beside, std::error_code& error) {
  std::random_device random;
  fs::create_directories(beside.parent_path(), error);
  for (int attempt = 0; attempt < 100 && !error; ++attempt) {
    const fs::path folder = beside.string() + fmt::format(".{:08x}{:08x}", random(), random());
    if (fs::create_directory(folder, error)) return folder;
  }
  return std::nullopt;
}

void write_all_files(const fs::path& folder) {
  for (const EmbeddedFile& file : default_model_files()) {
    NewFile out(folder / file.name);
    out.write(file.bytes.data(), file.bytes.size());
    out.finish();
  }
  sync_folder(folder);
}

// Removed with everything in it when it goes.
struct TemporaryFolder {
  fs::path path;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

// Puts the files to `place`, whole: beside it first, then there by names alone.
void put(const fs::path& place, const fs::path& made) {
  const TemporaryFolder beside{made};
  write_all_files(made);
  std::error_code error;
  fs::rename(made, place, error);
  if (!error || holds_all(place)) return;
  for (const EmbeddedFile& file : default_model_files()) {  // something else is there: a spoilt one
    fs::remove_all(place / file.name, error);
    fs::rename(made / file.name, place / file.name, error);
    if (error) fail_to_write(place / file.name, error.value());
  }
}

// For a process that has nowhere to keep it.
fs::path temporary_folder() {
  static const TemporaryFolder folder = [] {
    const fs::path beside = fs::temp_directory_path() / "regard";
    std::error_code error;
    const std::optional<fs::path> made = new_folder(beside, error);
    if (!made) fail_to_write(beside, error.value());
    write_all_files(*made);
    return TemporaryFolder{*made};
  }();
  return folder.path;
}

}  // namespace

bool default_model_is_there() { return holds_all(default_model_place()); }

fs::path default_model_folder() {
  std::optional<fs::path> place, made;
  try {
    place = default_model_place();
  } catch (const Error& error) {
    if (error.code != ErrorCode::io) throw;  // no home folder at all
  }
  if (place && holds_all(*place)) return *place;
  std::error_code ignored;  // there is a second place
  if (place) made = new_folder(*place, ignored);
  if (!made) return temporary_folder();
  put(*place, *made);
  return *place;
}

}  // namespace regard
