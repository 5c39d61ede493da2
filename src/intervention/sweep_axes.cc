#include "intervention/sweep_axes.h"

#include <algorithm>

#include "tensor/error.h"

namespace regard {
namespace {

Selector selector_of(std::string_view axis) {
  for (int s = 0; s < kSelectors; ++s)
    if (name(static_cast<Selector>(s)) == axis) return static_cast<Selector>(s);
  throw Error(ErrorCode::usage, fmt::format("--each has no axis '{}'", axis),
              "axes are layer, head, kv_head, row, key");
}

}  // namespace

SweepAxes::SweepAxes(std::vector<Edit> edits, std::string_view each,
                     const std::function<std::int64_t(Selector)>& extent, std::string_view typed)
    : edits_(std::move(edits)) {
  for (std::size_t begin = 0; begin <= each.size();) {
    const std::size_t end = std::min(each.find(',', begin), each.size());
    const Selector selector = selector_of(each.substr(begin, end - begin));
    const std::string_view axis = name(selector);
    begin = end + 1;
    if (std::find(each_.begin(), each_.end(), selector) != each_.end())
      throw Error(ErrorCode::usage, fmt::format("--each names {} twice", axis), "name each axis once");
    if (std::none_of(edits_.begin(), edits_.end(), [&](const Edit& edit) { return has(edit.site, selector); }))
      throw Error(ErrorCode::usage, fmt::format("--each {}: no edit has that selector", axis),
                  fmt::format("'{}' takes {}", typed, selectors_of(edits_.at(0).site)));
    bool any = false;
    for (std::size_t e = 0; e < edits_.size(); ++e) any |= runs_over(e, selector);
    if (!any)
      throw Error(ErrorCode::usage,
                  fmt::format("--each {0} runs over all values of {0}=, but the edit chooses some", axis),
                  fmt::format("leave {}= out of the edit", axis));
    each_.push_back(selector);
    shape_.push_back(extent(selector));
  }
}

bool SweepAxes::runs_over(std::size_t edit, Selector selector) const {
  return has(edits_[edit].site, selector) && !edits_[edit].at(selector);
}

std::int64_t SweepAxes::count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape_) count *= extent;
  return count;
}

std::vector<Edit> SweepAxes::edits_of(std::int64_t i) const {
  std::vector<Edit> edits = edits_;
  for (std::size_t axis = each_.size(); axis-- > 0; i /= shape_[axis])
    for (std::size_t e = 0; e < edits.size(); ++e)
      if (runs_over(e, each_[axis])) edits[e].at(each_[axis]) = std::to_string(i % shape_[axis]);
  return edits;
}

std::vector<std::int64_t> SweepAxes::matching(const std::function<bool(std::int64_t)>& matches,
                                              const std::function<void(std::int64_t)>& check,
                                              Progress* progress) const {
  std::vector<std::int64_t> matching;
  for (std::int64_t i = 0; i < count(); ++i) {
    constexpr std::int64_t kEvery = 4096;
    if (progress != nullptr && i % kEvery == 0) progress->at("planning", i, count());
    if (!matches(i)) continue;
    if (edits_.size() > 1) check(i);
    matching.push_back(i);
  }
  if (matching.empty()) check(0);
  return matching;
}

}  // namespace regard
