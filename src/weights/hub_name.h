#pragma once
// How a model on a hub is named: org/name[@revision][:file.gguf].

#include <optional>
#include <string>
#include <string_view>

namespace regard {

struct HubName {
  std::string repository;         // "org/name"
  std::string revision = "main";  // a branch, a tag or a commit
  std::string file;               // one .gguf file of it, or empty

  std::string text() const;  // as it was typed
};

// Nothing when the text is no such name, by the hub's own rules (huggingface_hub, validate_repo_id).
std::optional<HubName> parse_hub_name(std::string_view text);

// A file's name as a hub lists it: relative, and no part of it leads elsewhere or cannot be shown.
bool is_safe_hub_file(std::string_view name);

}  // namespace regard
