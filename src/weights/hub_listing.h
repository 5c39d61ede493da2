#pragma once
// What a hub says of a model: which files it has at which commit, and under which terms.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

struct HubFile {
  std::string name;  // relative; is_safe_hub_file()
  std::int64_t bytes = 0;
  std::string sum;  // sha256 of the bytes (large files), else git's blob sha1: lower-case hex, and the hub's etag
  bool is_sha256 = false;
};

struct HubListing {
  std::string commit;
  std::vector<HubFile> files;
  std::string licence;  // "apache-2.0", or empty where the model says nothing

  const HubFile* find(std::string_view name) const;
};

// The answer of GET /api/models/{repository}/revision/{revision}?blobs=true. Error{bad_input} naming the place in it: a
// commit or checksum that is none, a name that leads elsewhere; a hub that gives no checksums is unsupported. `subject`
// is what errors call it.
HubListing parse_hub_listing(std::string_view json, const std::string& subject);

// 40 or 64 lower-case hex letters: what may be the name of a commit or blob in the cache.
bool is_hex_sum(std::string_view text);

}  // namespace regard
