#include "weights/hub_name.h"

#include <algorithm>

namespace regard {

namespace {

constexpr std::size_t kLongestPath = 1000;  // bytes

bool is_repository_part(std::string_view part) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !part.empty() && part.size() <= 96 && std::all_of(part.begin(), part.end(), plain) && part.front() != '-' &&
         part.front() != '.' && part.back() != '-' && part.back() != '.' && part.find("--") == part.npos &&
         part.find("..") == part.npos;
}

// A revision becomes a file under refs/ of the cache: "refs/pr/1" is one, "../x" is not.
bool is_path(std::string_view text) {
  if (text.empty() || text.size() > kLongestPath || text.front() == '/' || text.back() == '/') return false;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

std::string HubName::text() const {
  return repository + (revision == "main" ? "" : "@" + revision) + (file.empty() ? "" : ":" + file);
}

std::optional<HubName> parse_hub_name(std::string_view text) {
  HubName name;
  if (const std::size_t colon = text.find(':'); colon != text.npos) {
    name.file = text.substr(colon + 1);
    if (!is_path(name.file) || !name.file.ends_with(".gguf")) return std::nullopt;
    text = text.substr(0, colon);
  }
  if (const std::size_t at = text.find('@'); at != text.npos) {
    name.revision = text.substr(at + 1);
    if (!is_path(name.revision)) return std::nullopt;
    text = text.substr(0, at);
  }
  const std::size_t slash = text.find('/');
  if (slash == text.npos || !is_repository_part(text.substr(0, slash)) || !is_repository_part(text.substr(slash + 1)))
    return std::nullopt;
  name.repository = text;
  return name;
}

bool is_safe_hub_file(std::string_view name) { return is_path(name); }

}  // namespace regard
