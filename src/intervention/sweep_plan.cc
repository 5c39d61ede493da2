#include "intervention/sweep_plan.h"

#include <algorithm>

namespace regard {
namespace {

std::int64_t extent(Selector selector, const ModelConfig& config, const Runs& runs) {
  const std::int64_t tokens = runs.at(kClean).tokens;
  const std::int64_t extents[kSelectors] = {config.layers, config.heads, config.kv_heads, tokens, tokens};
  return extents[static_cast<int>(selector)];
}

}  // namespace

SweepPlan::SweepPlan(std::vector<Edit> edits, std::string_view each, const ModelConfig& config, const Runs& runs)
    : SweepAxes(
          edits, each, [&](Selector selector) { return extent(selector, config, runs); }, to_string(edits.at(0))),
      config_(config),
      runs_(runs) {}

std::vector<Cells> SweepPlan::cells(std::int64_t i) const {
  std::vector<Cells> cells;
  for (const Edit& edit : edits(i)) cells.push_back(resolve(edit, config_, runs_));
  return cells;
}

std::vector<std::int64_t> SweepPlan::matching(Progress* progress) const {
  const auto matches = [&](std::int64_t i) {
    const std::vector<Cells> mine = cells(i);
    return std::all_of(mine.begin(), mine.end(), [&](const Cells& c) { return c.matched(config_) > 0; });
  };
  return SweepAxes::matching(
      matches, [&](std::int64_t i) { check(edits(i), cells(i), config_); }, progress);
}

}  // namespace regard
