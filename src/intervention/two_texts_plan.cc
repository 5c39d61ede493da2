#include "intervention/two_texts_plan.h"

#include <optional>

#include "tensor/error.h"

namespace regard {
namespace {

std::vector<Edit> unplaced(const std::vector<PlacedEdit>& placed) {
  std::vector<Edit> edits;
  for (const PlacedEdit& edit : placed) edits.push_back(edit.edit);
  return edits;
}

// What an axis runs over.
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

// The same in all edits that leave it out.
Axis axis_of(const TwoTextExperiment& experiment, Selector selector) {
  std::optional<Axis> runs_over;
  for (const PlacedEdit& placed : experiment.request().edits) {
    if (!has(placed.edit.site, selector) || placed.edit.at(selector)) continue;
    const Axis own = axis_of(experiment, placed, selector);
    if (runs_over && *runs_over != own)
      throw Error(ErrorCode::usage,
                  fmt::format("--each {}: it is not the same in the encoder and in the decoder", name(selector)),
                  "sweep edits of one attention at a time, or choose it in the edits");
    runs_over = own;
  }
  return runs_over.value();
}

}  // namespace

TwoTextPlan::TwoTextPlan(const TwoTextExperiment& experiment, std::string_view each)
    : SweepAxes(
          unplaced(experiment.request().edits), each,
          [&](Selector selector) { return axis_of(experiment, selector).extent; },
          to_string(experiment.request().edits.at(0))),
      experiment_(experiment) {
  for (const Selector selector : this->each()) of_source_.push_back(axis_of(experiment, selector).of_source);
}

std::vector<PlacedEdit> TwoTextPlan::edits(std::int64_t i) const {
  std::vector<PlacedEdit> edits = experiment_.request().edits;
  const std::vector<Edit> own = edits_of(i);
  for (std::size_t e = 0; e < edits.size(); ++e) edits[e].edit = own[e];
  return edits;
}

std::vector<std::int64_t> TwoTextPlan::matching(Progress* progress) const {
  return SweepAxes::matching([&](std::int64_t i) { return experiment_.matches(edits(i)); },
                             [&](std::int64_t i) { experiment_.check(edits(i)); }, progress);
}

}  // namespace regard
