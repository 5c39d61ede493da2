#include "weights/safetensors_index.h"

#include <string_view>

#include "weights/checked_json.h"

namespace regard {

namespace {

// A name that leads elsewhere could make a model out of any file of this machine.
bool is_plain(std::string_view name) {
  return name.find_first_of("/\\") == name.npos && name.find('\0') == name.npos && name.find("..") == name.npos;
}

}  // namespace

SafetensorsIndex read_safetensors_index(const std::filesystem::path& path) {
  const JsonPlace map = read_json(path).at("weight_map");
  if (!map.is_object() || map.size() == 0) throw map.error("should be an object that lists tensors");
  SafetensorsIndex index;
  for (const std::string& tensor : map.keys()) {
    const JsonPlace place = map.at(tensor);
    const std::string_view file = place.string();
    if (!is_plain(file)) throw place.error("is no plain file name");
    if (!file.ends_with(".safetensors"))
      throw place.error("is no .safetensors file", ErrorCode::unsupported,
                        "other kinds of weights are never opened: convert them to safetensors");
    index.file_of.emplace(tensor, file);
  }
  return index;
}

}  // namespace regard
