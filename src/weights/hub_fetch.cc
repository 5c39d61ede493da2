#include "weights/hub_fetch.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "tensor/error.h"
#include "weights/disk_room.h"
#include "weights/file_lock.h"
#include "weights/git_blob.h"
#include "weights/hub_cache.h"
#include "weights/hub_client.h"
#include "weights/hub_listing.h"
#include "weights/hub_selection.h"
#include "weights/new_file.h"
#include "weights/safetensors_index.h"
#include "weights/sha256.h"

namespace regard {

namespace {

namespace fs = std::filesystem;

std::int64_t size_of(const fs::path& path) {  // -1: not there
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  return error ? -1 : static_cast<std::int64_t>(bytes);
}

class HubFetch {
 public:
  HubFetch(const HubName& name, const HubSettings& settings, Progress* progress,
           const std::function<void(const std::string&)>& remark)
      : name_(name),
        progress_(progress),
        client_(settings, remark, [this] { tell(); }),
        cache_(settings.cache, name.repository) {}

  HubFetched run() {
    const std::string listing_path =
        fmt::format("/api/models/{}/revision/{}?blobs=true", name_.repository, percent_encoded(name_.revision));
    const HubListing listing = parse_hub_listing(client_.get(listing_path, name_.text()), name_.repository);
    commit_ = listing.commit;
    HubSelection selection = select_files(listing, name_);
    cache_.make_folders();
    HubFetched result;
    result.commit = commit_;
    result.licence = listing.licence;
    if (selection.by_index) add_shards(listing, selection);
    for (const HubFile& file : selection.files) result.bytes += file.bytes;
    total_ = result.bytes;
    done_ = 0;
    need_room(selection);
    for (const HubFile& file : selection.files) fetch_file(file);
    if (!is_hex_sum(name_.revision)) cache_.write_ref(name_.revision, commit_);
    const fs::path folder = cache_.snapshot(commit_);
    result.path = selection.main_file.empty() ? folder : folder / selection.main_file;
    for (const HubFile& file : selection.files)  // README.md may state the terms; a file of that name does
      if (file.name.starts_with("LICEN") || (file.name == "README.md" && result.licence_file.empty()))
        result.licence_file = folder / file.name;
    result.downloaded = downloaded_;
    return result;
  }

 private:
  void tell() const {
    if (progress_ != nullptr) progress_->at(doing_, done_, total_);
  }

  // The index comes first, as it says what else is needed.
  void add_shards(const HubListing& listing, HubSelection& selection) {
    const HubFile index = selection.files.back();
    fetch_file(index);
    std::set<std::string> names;
    for (const auto& [tensor, file] : read_safetensors_index(cache_.snapshot(commit_) / index.name).file_of)
      names.insert(file);
    for (const std::string& shard : names) {
      const HubFile* file = listing.find(shard);
      if (file == nullptr)
        throw Error(ErrorCode::not_found,
                    fmt::format("{}: {} lists {}, which is not there", name_.repository, index.name, shard),
                    "the model is not whole on the hub; name another revision");
      selection.files.push_back(*file);
    }
  }

  void need_room(const HubSelection& selection) const {
    std::int64_t need = 0;
    for (const HubFile& file : selection.files)
      if (size_of(cache_.blob(file.sum)) < 0)
        need += file.bytes - std::min(file.bytes, std::max<std::int64_t>(0, size_of(cache_.incomplete(file.sum))));
    regard::need_room(cache_.folder(), need, "what is missing of " + name_.text(),
                      "make room, or set HF_HOME to a folder on another disk");
  }

  bool is_right(const fs::path& path, const HubFile& file) {
    if (size_of(path) != file.bytes) return false;
    doing_ = "checking " + name_.repository;
    tell();
    return (file.is_sha256 ? sha256_of_file(path, [&](std::int64_t) { tell(); }) : git_blob_sha1_of_file(path)) ==
           file.sum;
  }

  void fetch_file(const HubFile& file) {
    const FileLock lock(cache_.lock(file.sum), kHubVariable, [&] {
      doing_ = "waiting for another program that fetches " + name_.repository;
      tell();
    });
    const std::int64_t before = done_;
    // On a file system without links the file itself is in the snapshot.
    const fs::path blob = cache_.blob(file.sum), linked = cache_.snapshot(commit_) / file.name;
    if (!is_right(blob, file) && !is_right(linked, file)) {
      download(file, before);
      downloaded_ += file.bytes;
    }
    if (size_of(blob) >= 0) cache_.link(commit_, file.name, file.sum);
    done_ = before + file.bytes;
  }

  void download(const HubFile& file, std::int64_t before) {
    const fs::path partial = cache_.incomplete(file.sum);
    const std::string subject = name_.repository + ", " + file.name;
    const std::string path =
        fmt::format("/{}/resolve/{}/{}", name_.repository, commit_, percent_encoded(file.name, "/"));
    for (const bool resumed = size_of(partial) > 0; const bool last : {!resumed, true}) {
      doing_ = "fetching " + name_.repository;
      {
        PartialFile out(partial, kHubVariable);
        client_.download(path, subject, file.bytes, out, [&](std::int64_t size) {
          done_ = before + size;
          tell();
        });
      }
      if (is_right(partial, file)) break;
      std::error_code error;
      fs::remove(partial, error);
      if (last)
        throw Error(ErrorCode::io,
                    fmt::format("{}: what came has not the checksum that the hub lists ({})", subject, file.sum),
                    "fetch it again; HF_ENDPOINT names another hub");
    }
    std::error_code error;
    fs::rename(partial, cache_.blob(file.sum), error);
    if (error) fail_to_write(cache_.blob(file.sum), error.value(), kHubVariable);
    sync_folder(cache_.blob(file.sum).parent_path());
  }

  const HubName& name_;
  Progress* progress_;
  HubClient client_;
  HubCache cache_;
  std::string commit_, doing_ = "asking the hub";
  std::int64_t done_ = 0, total_ = 0, downloaded_ = 0;
};

}  // namespace

HubFetched fetch_from_hub(const HubName& name, Progress* progress,
                          const std::function<void(const std::string&)>& remark) {
  const HubSettings settings = hub_settings();
  if (!settings.offline) return HubFetch(name, settings, progress, remark).run();
  try {
    HubFetched here;
    here.path = locate_in_hub_cache(name);
    return here;
  } catch (const Error& error) {
    throw Error(error.code, error.message, "HF_HUB_OFFLINE is set: unset it to fetch");
  }
}

}  // namespace regard
