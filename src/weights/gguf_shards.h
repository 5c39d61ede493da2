#pragma once
// A GGUF model that may lie in several files, name-00001-of-00003.gguf and so on, seen as one.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weights/gguf.h"
#include "weights/mapped_file.h"

namespace regard {

struct GgufShards {
  struct Place {
    std::size_t shard = 0;
    const GgufTensor* tensor = nullptr;
  };

  // `path`: the only file, or the first of a set; the others are looked for beside it, by the name's pattern. Errors:
  // bad_input when a file is not the part that its name says, or a tensor is in two.
  explicit GgufShards(const std::filesystem::path& path);
  GgufShards(const GgufShards&) = delete;  // `tensors` points into `ggufs`

  const GgufFile& first() const { return ggufs.front(); }
  const std::string& file(const Place& place) const { return ggufs[place.shard].file; }
  const MappedFile& mapping(const Place& place) const { return *mappings[place.shard]; }

  std::vector<std::shared_ptr<MappedFile>> mappings;
  std::vector<GgufFile> ggufs;
  std::map<std::string, Place, std::less<>> tensors;
};

}  // namespace regard
