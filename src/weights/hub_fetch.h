#pragma once
// Getting a model from a hub, into the hub's own cache (hub_cache.h): listed, downloaded, checked, linked.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "parallel/progress.h"
#include "weights/hub_name.h"

namespace regard {

struct HubFetched {
  std::filesystem::path path;  // what to load
  std::string commit;
  std::string licence;                 // as the hub names it, or empty
  std::filesystem::path licence_file;  // or empty
  std::int64_t bytes = 0;              // of all files
  std::int64_t downloaded = 0;         // of them, now
};

// Resumable, also what another program began. A file is in the cache only when its checksum is right, and a revision
// points to the new commit only when all files are there. Two at once, also another program: one waits for the other.
// `progress` may be null; it may throw Error{interrupted}; what came is kept. `remark` is told of what is tried again.
// With HF_HUB_OFFLINE: what the cache has. Errors: those of HubSettings, HubClient, HubListing, select_files; io for a
// full disk, a folder that cannot be written, a file with another checksum than listed.
HubFetched fetch_from_hub(const HubName& name, Progress* progress,
                          const std::function<void(const std::string&)>& remark);

}  // namespace regard
