#include "weights/safetensors.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "tensor/error.h"
#include "weights/gguf.h"
#include "weights/safetensors_header.h"
#include "weights/safetensors_index.h"

namespace regard {

namespace {

namespace fs = std::filesystem;

void add_file(const fs::path& path, SafetensorsFiles& files) {
  auto mapping = std::make_shared<MappedFile>(path);
  SafetensorsHeader header = read_safetensors_header(*mapping);
  const std::byte* data = mapping->data() + header.data_offset;
  const std::size_t file = files.mappings.size();
  while (!header.entries.empty()) {
    auto node = header.entries.extract(header.entries.begin());
    SafetensorsEntry& entry = node.mapped();
    const auto [at, is_new] = files.tensors.try_emplace(std::move(node.key()));
    if (!is_new)
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: the tensor {} is in {} too", path.string(), in_quotes(at->first),
                              files.mappings[at->second.file]->path().string()));
    at->second = {std::string(entry.type->name), entry.type->dtype,
                  std::move(entry.shape),        data + entry.begin,
                  entry.end - entry.begin,       file};
  }
  files.metadata.merge(header.metadata);
  files.mappings.push_back(std::move(mapping));
}

void add_indexed(const fs::path& index_path, SafetensorsFiles& files) {
  const SafetensorsIndex index = read_safetensors_index(index_path);
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.file_of) names.insert(file);
  for (const std::string& name : names) {
    const fs::path path = index_path.parent_path() / name;
    std::error_code error;
    if (!fs::exists(path, error))
      throw Error(ErrorCode::not_found,
                  fmt::format("{}: the file {} that it lists is not there", index_path.string(), in_quotes(name)),
                  "the model is not complete; fetch it again");
    add_file(path, files);
  }
  for (const auto& [tensor, file] : index.file_of) {
    const auto at = files.tensors.find(tensor);
    if (at == files.tensors.end())
      throw Error(ErrorCode::bad_input, fmt::format("{}: the tensor {} is not in {}, where it should be",
                                                    index_path.string(), in_quotes(tensor), in_quotes(file)));
    const fs::path found = files.mappings[at->second.file]->path().filename();
    if (found != file)
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: the tensor {} is in {}, but should be in {}", index_path.string(), in_quotes(tensor),
                              in_quotes(found.string()), in_quotes(file)));
  }
}

// What a folder without safetensors has instead: to say so is better than "not found".
[[noreturn]] void nothing_in(const fs::path& folder) {
  std::vector<std::string> pickled;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string extension = at->path().extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".ckpt")
      pickled.push_back(at->path().filename().string());
  }
  if (error) throw Error(ErrorCode::io, fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  if (!pickled.empty())
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: the weights are there only as {}, a pickle file, which can run any program when it is "
                            "read and is therefore never opened",
                            folder.string(), in_quotes(*std::min_element(pickled.begin(), pickled.end()))),
                "convert it to safetensors where you trust it (transformers: save_pretrained), or take a revision "
                "that has model.safetensors");
  throw Error(ErrorCode::not_found,
              fmt::format("{}: there is neither {} nor {}", folder.string(), kSafetensorsFile, kSafetensorsIndexFile),
              "name a folder of a model, or the .safetensors file itself");
}

}  // namespace

SafetensorsFiles read_safetensors(const fs::path& path) {
  SafetensorsFiles files;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    path.extension() == ".json" ? add_indexed(path, files) : add_file(path, files);
  } else if (fs::exists(path / kSafetensorsFile, error)) {
    add_file(path / kSafetensorsFile, files);
  } else if (fs::exists(path / kSafetensorsIndexFile, error)) {
    add_indexed(path / kSafetensorsIndexFile, files);
  } else {
    nothing_in(path);
  }
  for (const auto& mapping : files.mappings) mapping->check_intact();
  return files;
}

}  // namespace regard
