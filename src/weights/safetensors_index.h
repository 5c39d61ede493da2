#pragma once
// model.safetensors.index.json: which file of a folder holds which tensor.

#include <filesystem>
#include <map>
#include <string>

namespace regard {

// What a folder holds its tensors in: the one, or parts that the other lists.
inline constexpr const char* kSafetensorsFile = "model.safetensors";
inline constexpr const char* kSafetensorsIndexFile = "model.safetensors.index.json";

struct SafetensorsIndex {
  std::map<std::string, std::string, std::less<>> file_of;  // tensor name -> name of a file in the same folder
};

// Errors: not_found, io, bad_input: no JSON, no weight_map, a tensor listed twice, the name of a file that is not plain
// ("../x", "/x", "a/b") or that does not end in .safetensors.
SafetensorsIndex read_safetensors_index(const std::filesystem::path& path);

}  // namespace regard
