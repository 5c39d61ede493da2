#pragma once
// The hub's own cache of downloaded files, shared with every program that uses it (huggingface_hub, "Understand
// caching"):
//   models--org--name/
//     blobs/SUM                    the bytes of a file, by its checksum; SUM.incomplete while they come
//     snapshots/COMMIT/NAME        a relative link to a blob, for each file of that commit
//     refs/REVISION                the commit that a branch or tag stood at
//   .locks/models--org--name/SUM.lock    who is writing blobs/SUM

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/hub_name.h"

namespace regard {

// Of the environment: names another folder to keep them in.
inline constexpr std::string_view kHubVariable = "HF_HOME";

class HubCache {
 public:
  HubCache(std::filesystem::path cache, const std::string& repository);

  std::filesystem::path blob(const std::string& sum) const { return folder_ / "blobs" / sum; }
  std::filesystem::path incomplete(const std::string& sum) const { return folder_ / "blobs" / (sum + ".incomplete"); }
  std::filesystem::path lock(const std::string& sum) const { return locks_ / (sum + ".lock"); }
  std::filesystem::path snapshot(const std::string& commit) const { return folder_ / "snapshots" / commit; }
  const std::filesystem::path& folder() const { return folder_; }

  void make_folders() const;  // Errors of this and what follows: io
  // snapshots/COMMIT/NAME -> the blob; on a file system without links the blob itself moves there.
  void link(const std::string& commit, const std::string& name, const std::string& sum) const;
  void write_ref(const std::string& revision, const std::string& commit) const;

  // The commit of a branch or tag as it was last seen here, or `revision` itself when it is a commit that is here.
  std::optional<std::string> commit_of(const std::string& revision) const;

 private:
  std::filesystem::path folder_, locks_;
};

// What to load of a model that is in the cache: its folder, or a .gguf file. Error{not_found} when it is not there, or
// not all of it, with the command that fetches it.
std::filesystem::path locate_in_hub_cache(const HubName& name);

struct CachedModel {
  HubName name;
  std::filesystem::path path;  // what to load
  std::int64_t bytes = 0;      // of all files of its snapshot
};

// The models of the cache, whoever fetched them, that have weights which regard could load, as their main branch was
// last seen; by name. What cannot be read is left out.
std::vector<CachedModel> models_in_hub_cache();

}  // namespace regard
