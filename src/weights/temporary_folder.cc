#include "weights/temporary_folder.h"

#include <fmt/core.h>

#include <random>

#include "weights/new_file.h"

namespace regard {
namespace fs = std::filesystem;

std::optional<fs::path> new_folder(const fs::path& beside, std::error_code& error) {
  std::random_device random;
  fs::create_directories(beside.parent_path(), error);
  for (int attempt = 0; attempt < 100 && !error; ++attempt) {
    const fs::path folder = beside.string() + fmt::format(".{:08x}{:08x}", random(), random());
    if (fs::create_directory(folder, error)) return folder;
  }
  return std::nullopt;
}

TemporaryFolder TemporaryFolder::of(const char* name) {
  std::error_code error;
  const fs::path among = fs::temp_directory_path(error);
  const std::optional<fs::path> made = error ? std::nullopt : new_folder(among / name, error);
  if (!made) fail_to_write(among / name, error.value(), "TMPDIR");
  return TemporaryFolder(*made);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace regard
