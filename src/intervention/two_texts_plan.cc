#include "intervention/two_texts_plan.h"

#include <algorithm>
#include <optional>

#include "tensor/error.h"

namespace regard {
namespace {

bool is_left_out(const PlacedEdit& placed, Selector selector) {
  return has(placed.edit.site, selector) && !placed.edit.at(selector);
}

// What an axis of an edit runs over.
struct Axis {
  std::int64_t extent = 0;
  bool of_source = false;
  bool operator==(const Axis&) const = default;
};

Axis axis_of(const TwoTextExperiment& experiment, const PlacedEdit& placed, Selector selector) {
  const bool encoder = placed.attention == Attention::encoder;
  const ModelConfig& config = encoder ? experiment.model().encoder()->config() : experiment.model().config();
  const bool source = encoder || (placed.attention == Attention::cross && selector == Selector::key);
  switch (selector) {
    case Selector::layer:
      return {config.layers};
    case Selector::head:
      return {config.heads};
    case Selector::kv_head:
      return {config.kv_heads};
    case Selector::row:
    case Selector::key:
      break;
  }
  return {std::ssize(source ? experiment.request().source : experiment.request().target), source};
}

Selector selector_of(std::string_view axis) {
  for (int s = 0; s < kSelectors; ++s)
    if (name(static_cast<Selector>(s)) == axis) return static_cast<Selector>(s);
  throw Error(ErrorCode::usage, fmt::format("--each has no axis '{}'", axis),
              "axes are layer, head, kv_head, row, key");
}

}  // namespace

TwoTextPlan::TwoTextPlan(const TwoTextExperiment& experiment, std::string_view each) : experiment_(experiment) {
  const std::vector<PlacedEdit>& edits = experiment.request().edits;
  for (std::size_t begin = 0; begin <= each.size();) {
    const std::size_t end = std::min(each.find(',', begin), each.size());
    const Selector selector = selector_of(each.substr(begin, end - begin));
    const std::string_view axis = name(selector);
    begin = end + 1;
    if (std::find(each_.begin(), each_.end(), selector) != each_.end())
      throw Error(ErrorCode::usage, fmt::format("--each names {} twice", axis), "name each axis once");
    if (std::none_of(edits.begin(), edits.end(), [&](const PlacedEdit& e) { return has(e.edit.site, selector); }))
      throw Error(ErrorCode::usage, fmt::format("--each {}: no edit has that selector", axis),
                  fmt::format("'{}' takes {}", to_string(edits.at(0)), selectors_of(edits.at(0).edit.site)));
    std::optional<Axis> runs_over;
    for (const PlacedEdit& edit : edits) {
      if (!is_left_out(edit, selector)) continue;
      const Axis own = axis_of(experiment, edit, selector);
      if (runs_over && *runs_over != own)
        throw Error(ErrorCode::usage,
                    fmt::format("--each {}: it is not the same in the encoder and in the decoder", axis),
                    "sweep edits of one attention at a time, or choose it in the edits");
      runs_over = own;
    }
    if (!runs_over)
      throw Error(ErrorCode::usage,
                  fmt::format("--each {0} runs over all values of {0}=, but the edit chooses some", axis),
                  fmt::format("leave {}= out of the edit", axis));
    each_.push_back(selector);
    shape_.push_back(runs_over->extent);
    of_source_.push_back(runs_over->of_source);
  }
}

std::int64_t TwoTextPlan::count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape_) count *= extent;
  return count;
}

std::vector<PlacedEdit> TwoTextPlan::edits(std::int64_t i) const {
  const std::vector<PlacedEdit>& whole = experiment_.request().edits;
  std::vector<PlacedEdit> edits = whole;
  for (std::size_t axis = each_.size(); axis-- > 0; i /= shape_[axis])
    for (std::size_t e = 0; e < edits.size(); ++e)
      if (is_left_out(whole[e], each_[axis])) edits[e].edit.at(each_[axis]) = std::to_string(i % shape_[axis]);
  return edits;
}

std::vector<std::int64_t> TwoTextPlan::matching(Progress* progress) const {
  std::vector<std::int64_t> matching;
  for (std::int64_t i = 0; i < count(); ++i) {
    constexpr std::int64_t kEvery = 4096;
    if (progress != nullptr && i % kEvery == 0) progress->at("planning", i, count());
    const std::vector<PlacedEdit> mine = edits(i);
    if (!experiment_.matches(mine)) continue;
    if (mine.size() > 1) experiment_.check(mine);
    matching.push_back(i);
  }
  if (matching.empty()) experiment_.check(edits(0));
  return matching;
}

}  // namespace regard
