#include "intervention/prepared_edits.h"

namespace regard {

PreparedEdits::PreparedEdits(const Model& model, std::span<const std::int32_t> ids,
                             const std::map<std::string, std::vector<std::int32_t>>& runs, std::span<const Edit> edits,
                             Progress* progress) {
  Runs known = {{kClean, {std::ssize(ids), nullptr}}};
  for (const auto& [name, text] : runs) known[name].tokens = std::ssize(text);
  const auto resolve_all = [&] {
    cells_.clear();
    for (const Edit& edit : edits) cells_.push_back(resolve(edit, model.config(), known));
  };
  resolve_all();
  check(edits, cells_, model.config());
  for (const auto& [name, sites] : sites_needed(edits)) {
    const std::span<const std::int32_t> text = name == kClean ? ids : std::span<const std::int32_t>(runs.at(name));
    known[name].record = &records_.try_emplace(name, model, text, sites, progress).first->second;
  }
  resolve_all();
}

}  // namespace regard
