#include "weights/hub_listing.h"

#include <algorithm>
#include <set>

#include "tensor/error.h"
#include "weights/checked_json.h"
#include "weights/hub_name.h"

namespace regard {

namespace {

HubFile file_from(const JsonPlace& entry) {
  HubFile file;
  const JsonPlace name = entry.at("rfilename");
  file.name = name.string();
  if (!is_safe_hub_file(file.name)) throw name.error("is a file name that leads elsewhere; nothing is fetched");
  JsonPlace sum = entry, size = entry;
  if (const auto large = entry.find("lfs")) {
    sum = large->at("sha256");
    size = large->at("size");
    file.is_sha256 = true;
  } else {
    const auto blob = entry.find("blobId");
    if (!blob)
      throw entry.error("has no checksum", ErrorCode::unsupported, "take a hub that gives them; HF_ENDPOINT names it");
    sum = *blob;
    size = entry.at("size");
  }
  file.sum = sum.string();
  if (!is_hex_sum(file.sum) || (file.sum.size() == 64) != file.is_sha256) throw sum.error("is no checksum");
  file.bytes = size.integer();
  if (file.bytes < 0) throw size.error("is no size");
  return file;
}

std::string licence_from(const JsonPlace& model) {
  static constexpr std::string_view kTag = "license:";
  if (const auto tags = model.find("tags"); tags && tags->is_array())
    for (const JsonPlace& tag : tags->elements())
      if (tag.is_string() && tag.string().starts_with(kTag)) return std::string(tag.string().substr(kTag.size()));
  return "";
}

}  // namespace

bool is_hex_sum(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

const HubFile* HubListing::find(std::string_view name) const {
  const auto at = std::find_if(files.begin(), files.end(), [&](const HubFile& file) { return file.name == name; });
  return at == files.end() ? nullptr : &*at;
}

HubListing parse_hub_listing(std::string_view json, const std::string& subject) {
  const JsonPlace model = parse_json(json, subject + ": the hub's listing");
  HubListing listing;
  const JsonPlace commit = model.at("sha");
  listing.commit = commit.string();
  if (!is_hex_sum(listing.commit)) throw commit.error("is no commit");
  listing.licence = licence_from(model);
  std::set<std::string> names;
  for (const JsonPlace& entry : model.at("siblings").elements()) {
    HubFile file = file_from(entry);
    if (!names.insert(file.name).second) throw entry.error("is a file that is listed twice");
    listing.files.push_back(std::move(file));
  }
  return listing;
}

}  // namespace regard
