#include "intervention/prepared_edits.h"

#include "tensor/error.h"

namespace regard {

PreparedEdits::PreparedEdits(const Model& model, std::span<const std::int32_t> ids,
                             const std::map<std::string, std::vector<std::int32_t>>& runs, std::span<const Edit> edits,
                             Progress* progress, const Continuation& continuation) {
  check_listed(continuation);
  Runs known = {{kClean, {std::ssize(ids), nullptr}}};
  for (const auto& [name, text] : runs) known[name].tokens = std::ssize(text);
  const auto resolve_all = [&] {
    cells_.clear();
    for (const Edit& edit : edits) cells_.push_back(resolve(edit, model.config(), known, continuation.rows));
  };
  resolve_all();
  check(edits, cells_, model.config());
  for (const auto& [name, sites] : sites_needed(edits)) {
    const std::span<const std::int32_t> text = name == kClean ? ids : std::span<const std::int32_t>(runs.at(name));
    known[name].record =
        &records_.try_emplace(name, model, text, sites, progress, nullptr, continuation.planned_length).first->second;
  }
  resolve_all();
}

void check_listed(const Continuation& continuation) {
  constexpr std::int64_t kMost = 1 << 20;  // cells name every row and key that they may hold for: 8 bytes each
  if (continuation.rows > kMost)
    throw Error(ErrorCode::usage,
                fmt::format("edits are made in texts of at most {} tokens, and this one may come to {}", kMost,
                            continuation.rows),
                "make fewer tokens");
}

}  // namespace regard
