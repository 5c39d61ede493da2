#pragma once
// Which of a model's files regard needs.

#include <vector>

#include "weights/hub_listing.h"
#include "weights/hub_name.h"

namespace regard {

struct HubSelection {
  std::vector<HubFile> files;  // configuration, tokenizer, terms; and the weights where `by_index` is false
  bool by_index = false;       // the weights are those that model.safetensors.index.json, one of `files`, will list
  std::string main_file;       // what to load: a .gguf file, or empty for the folder
};

// Weights: model.safetensors, or those of the index; a .gguf file when the name says so, or there is nothing else and
// just one. Errors: not_found (no such .gguf file; several and none named, with their names and sizes; no weights at
// all), unsupported (only pickle files).
HubSelection select_files(const HubListing& listing, const HubName& name);

// The first file of the split set that this .gguf file belongs to ("x-00001-of-00003.gguf"), or itself.
std::string first_of_split(const std::string& file);

}  // namespace regard
