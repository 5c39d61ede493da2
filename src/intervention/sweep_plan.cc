#include "intervention/sweep_plan.h"

#include <algorithm>

#include "tensor/error.h"

namespace regard {

SweepPlan::SweepPlan(std::vector<Edit> edits, std::string_view each, const ModelConfig& config, const Runs& runs)
    : edits_(std::move(edits)), config_(config), runs_(runs) {
  const std::int64_t tokens = runs.at(kClean).tokens;
  const std::int64_t extent[kSelectors] = {config.layers, config.heads, config.kv_heads, tokens, tokens};
  for (std::size_t begin = 0; begin <= each.size();) {
    const std::size_t end = std::min(each.find(',', begin), each.size());
    const std::string_view axis = each.substr(begin, end - begin);
    begin = end + 1;
    int s = 0;
    while (s < kSelectors && name(static_cast<Selector>(s)) != axis) ++s;
    if (s == kSelectors)
      throw Error(ErrorCode::usage, fmt::format("--each has no axis '{}'", axis),
                  "axes are layer, head, kv_head, row, key");
    const Selector selector = static_cast<Selector>(s);
    if (std::find(each_.begin(), each_.end(), selector) != each_.end())
      throw Error(ErrorCode::usage, fmt::format("--each names {} twice", axis), "name each axis once");
    if (std::none_of(edits_.begin(), edits_.end(), [&](const Edit& edit) { return has(edit.site, selector); }))
      throw Error(ErrorCode::usage, fmt::format("--each {}: no edit has that selector", axis),
                  fmt::format("'{}' takes {}", to_string(edits_.at(0)), selectors_of(edits_.at(0).site)));
    if (std::none_of(edits_.begin(), edits_.end(),
                     [&](const Edit& edit) { return has(edit.site, selector) && !edit.at(selector); }))
      throw Error(ErrorCode::usage,
                  fmt::format("--each {0} runs over all values of {0}=, but the edit chooses some", axis),
                  fmt::format("leave {}= out of the edit", axis));
    each_.push_back(selector);
    shape_.push_back(extent[s]);
  }
}

std::int64_t SweepPlan::count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape_) count *= extent;
  return count;
}

std::vector<Edit> SweepPlan::edits(std::int64_t i) const {
  std::vector<Edit> edits = edits_;
  for (std::size_t axis = each_.size(); axis-- > 0; i /= shape_[axis])
    for (std::size_t e = 0; e < edits.size(); ++e)
      if (has(edits[e].site, each_[axis]) && !edits_[e].at(each_[axis]))
        edits[e].at(each_[axis]) = std::to_string(i % shape_[axis]);
  return edits;
}

std::vector<Cells> SweepPlan::cells(std::int64_t i) const {
  std::vector<Cells> cells;
  for (const Edit& edit : edits(i)) cells.push_back(resolve(edit, config_, runs_));
  return cells;
}

std::vector<std::int64_t> SweepPlan::matching(Progress* progress) const {
  std::vector<std::int64_t> matching;
  for (std::int64_t i = 0; i < count(); ++i) {
    constexpr std::int64_t kEvery = 4096;
    if (progress != nullptr && i % kEvery == 0) progress->at("planning", i, count());
    const std::vector<Cells> mine = cells(i);
    if (std::all_of(mine.begin(), mine.end(), [&](const Cells& c) { return c.matched(config_) > 0; })) {
      if (mine.size() > 1) check(edits(i), mine, config_);
      matching.push_back(i);
    }
  }
  if (matching.empty()) check(edits(0), cells(0), config_);
  return matching;
}

}  // namespace regard
