#pragma once
// The tensors of a safetensors file, or of a folder with one or with several of them: where they lie and what they are.
// Nothing is copied; no alignment is assumed.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weights/mapped_file.h"
#include "weights/stored_tensor.h"

namespace regard {

struct SafetensorsFiles {
  std::vector<std::shared_ptr<MappedFile>> mappings;
  std::map<std::string, StoredTensor, std::less<>> tensors;
  std::map<std::string, std::string> metadata;  // of all files; where they differ, the first one's
};

// `path`: a .safetensors file; a model.safetensors.index.json; or a folder with model.safetensors, else with
// model.safetensors.index.json, of which just the files it lists are read. A tensor that a listed file holds and the
// index does not list is there too, as in transformers.
// Errors: not_found (nothing to load, a file that the index lists), bad_input (SafetensorsHeader's and
// SafetensorsIndex's rules; a tensor that is not in the file the index says, or in two), unsupported (weights only as
// pickle files, which are never opened: reading them runs what is in them).
SafetensorsFiles read_safetensors(const std::filesystem::path& path);

}  // namespace regard
