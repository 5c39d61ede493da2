#include "weights/hub_cache.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <vector>

#include "tensor/error.h"
#include "weights/checked_json.h"
#include "weights/hub_listing.h"
#include "weights/hub_selection.h"
#include "weights/hub_settings.h"
#include "weights/new_file.h"
#include "weights/safetensors_index.h"

namespace regard {

namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);  // through links
}

// model.safetensors, or an index and all that it lists.
bool has_safetensors(const fs::path& folder) {
  if (is_file(folder / "model.safetensors")) return true;
  const fs::path index = folder / "model.safetensors.index.json";
  if (!is_file(index)) return false;
  const SafetensorsIndex listed = read_safetensors_index(index);
  return std::all_of(listed.file_of.begin(), listed.file_of.end(), [&, before = std::string()](const auto& e) mutable {
    return e.second == before || is_file(folder / (before = e.second));
  });
}

std::set<std::string> ggufs_in(const fs::path& folder) {
  std::set<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".gguf") found.insert(first_of_split(at->path().filename().string()));
  return found;
}

}  // namespace

HubCache::HubCache(fs::path cache, const std::string& repository) {
  std::string name = "models--" + repository;
  if (const std::size_t slash = name.find('/'); slash != name.npos) name.replace(slash, 1, "--");
  folder_ = cache / name;
  locks_ = cache / ".locks" / name;
}

void HubCache::make_folders() const {
  for (const fs::path& folder : {folder_ / "blobs", folder_ / "refs", folder_ / "snapshots", locks_})
    make_folder(folder, kHubVariable);
}

void HubCache::link(const std::string& commit, const std::string& name, const std::string& sum) const {
  const fs::path place = snapshot(commit) / name, target = fs::relative(blob(sum), place.parent_path());
  make_folder(place.parent_path(), kHubVariable);
  std::error_code error;
  if (fs::read_symlink(place, error) == target && !error) return;
  fs::remove(place, error);
  fs::create_symlink(target, place, error);
  if (error == std::errc::operation_not_permitted || error == std::errc::operation_not_supported ||
      error == std::errc::function_not_supported)
    fs::rename(blob(sum), place, error);
  if (error) fail_to_write(place, error.value(), kHubVariable);
}

void HubCache::write_ref(const std::string& revision, const std::string& commit) const {
  const fs::path ref = folder_ / "refs" / revision, next = ref.string() + ".new";
  make_folder(ref.parent_path(), kHubVariable);
  NewFile file(next, kHubVariable);
  file.write(commit.data(), commit.size());
  file.finish();
  std::error_code error;
  fs::rename(next, ref, error);
  if (error) fail_to_write(ref, error.value(), kHubVariable);
}

std::optional<std::string> HubCache::commit_of(const std::string& revision) const {
  std::error_code error;
  if (is_hex_sum(revision) && fs::is_directory(snapshot(revision), error)) return revision;
  const fs::path ref = folder_ / "refs" / revision;
  if (!is_file(ref)) return std::nullopt;
  std::string commit = read_whole_file(ref, 200);
  commit.erase(commit.find_last_not_of(" \r\n") + 1);
  return is_hex_sum(commit) ? std::optional(commit) : std::nullopt;
}

fs::path locate_in_hub_cache(const HubName& name) {
  const HubCache cache(hub_cache_folder(), name.repository);
  const std::string fetch = fmt::format("regard fetch {} gets them", name.text());
  const auto commit = cache.commit_of(name.revision);
  if (!commit)
    throw Error(ErrorCode::not_found,
                fmt::format("the weights of {} are not here ({})", name.text(), cache.folder().string()), fetch);
  const fs::path folder = cache.snapshot(*commit);
  if (!name.file.empty()) {
    if (is_file(folder / name.file)) return folder / first_of_split(name.file);
  } else {
    if (has_safetensors(folder)) return folder;
    const std::set<std::string> ggufs = ggufs_in(folder);
    if (ggufs.size() == 1 && is_file(folder / *ggufs.begin())) return folder / *ggufs.begin();
    if (ggufs.size() > 1)
      throw Error(ErrorCode::not_found, fmt::format("of {} there are several GGUF files here", name.text()),
                  fmt::format("name one: {}:{}", name.text(), *ggufs.begin()));
  }
  throw Error(ErrorCode::not_found,
              fmt::format("the weights of {} are not here, or not all of them ({})", name.text(), folder.string()),
              fetch);
}

std::vector<CachedModel> models_in_hub_cache() {
  static constexpr std::string_view kPrefix = "models--";
  std::vector<CachedModel> models;
  std::error_code error;
  for (fs::directory_iterator at(hub_cache_folder(), error), end; !error && at != end; at.increment(error)) {
    std::string folder = at->path().filename().string();
    const std::size_t separator = folder.find("--", kPrefix.size());
    if (!folder.starts_with(kPrefix) || separator == folder.npos) continue;
    const auto name = parse_hub_name(folder.replace(separator, 2, "/").substr(kPrefix.size()));
    if (!name) continue;
    try {
      CachedModel model{*name, locate_in_hub_cache(*name)};
      const fs::path snapshot = fs::is_directory(model.path) ? model.path : model.path.parent_path();
      for (const fs::directory_entry& file : fs::recursive_directory_iterator(snapshot))
        if (file.is_regular_file()) model.bytes += static_cast<std::int64_t>(file.file_size());
      models.push_back(std::move(model));
    } catch (const Error&) {
    } catch (const fs::filesystem_error&) {
    }
  }
  std::sort(models.begin(), models.end(),
            [](const CachedModel& a, const CachedModel& b) { return a.name.repository < b.name.repository; });
  return models;
}

}  // namespace regard
