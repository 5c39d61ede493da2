#include "intervention/experiment.h"

#include <algorithm>
#include <cmath>

#include "intervention/sweep.h"
#include "model/forward.h"
#include "model/visible_keys.h"
#include "reading/selection.h"
#include "tensor/error.h"

namespace regard {
namespace {

// Everything to be kept, by run.
std::map<std::string, std::set<Site>> sites_of_runs(const ExperimentRequest& request) {
  std::map<std::string, std::set<Site>> sites = sites_needed(request.edits);
  sites[kClean].insert(request.sites.begin(), request.sites.end());
  for (const auto& [name, ids] : request.runs) sites[name];
  const auto about_weights = [](const Edit& edit) { return PatternDistanceTap::about_weights(edit.site); };
  if (std::any_of(request.edits.begin(), request.edits.end(), about_weights) ||
      std::any_of(request.receivers.begin(), request.receivers.end(), about_weights)) {
    const std::set<Site> pattern = PatternDistanceTap::sites();
    sites[kClean].insert(pattern.begin(), pattern.end());
  }
  if (!request.receivers.empty()) sites[kClean].insert(Site::z);  // what heads keep
  return sites;
}

}  // namespace

Experiment::Experiment(const Model& model, ExperimentRequest request, bool partial, Progress* progress)
    : model_(model), request_(std::move(request)) {
  const ModelConfig& config = model.config();
  row_ = select(std::vector{request_.row}, tokens(), "row")[0];
  runs_[kClean].tokens = tokens();
  for (const auto& [name, ids] : request_.runs) {
    if (name == kClean)
      throw Error(ErrorCode::usage, "a run cannot be called 'clean'", "that is the run of the prompt without edits");
    runs_[name].tokens = std::ssize(ids);
  }
  // The last row stands for the last row of each text, any other for itself.
  if (const auto contrast = runs_.find("contrast"); contrast != runs_.end()) {
    contrast_row_ = request_.contrast_row.value_or(request_.row == -1 ? contrast->second.tokens - 1 : row_);
    if (contrast_row_ >= contrast->second.tokens)
      throw Error(ErrorCode::usage,
                  fmt::format("the contrast has no position {}: it has {} tokens", row_, contrast->second.tokens),
                  "measure at a row that both texts have, or choose a longer contrast");
  }
  const std::vector<Cells> cells = resolve(request_.edits);
  if (!partial) check(request_.edits, cells, config);
  if (!request_.receivers.empty()) check(request_.receivers, resolve(request_.receivers), config);

  for (const auto& [name, sites] : sites_of_runs(request_)) {
    const std::vector<std::int32_t>& ids = name == kClean ? request_.ids : request_.runs.at(name);
    runs_[name].record = &records_.try_emplace(name, model, ids, sites, progress).first->second;
  }
  measure_.emplace(model, request_.metric, clean().final_resid(), row_);
}

std::vector<Cells> Experiment::resolve(std::span<const Edit> edits) const {
  std::vector<Cells> cells;
  for (const Edit& edit : edits) cells.push_back(regard::resolve(edit, model_.config(), runs_));
  return cells;
}

std::optional<double> Experiment::contrast() const {
  const auto found = records_.find("contrast");
  if (found == records_.end()) return {};
  const View<const float, 2> resid = found->second.final_resid();
  if (measure_->of_all_rows()) return measure_->of_text(resid);
  return measure_->of(resid.slice(contrast_row_, contrast_row_ + 1))[0];
}

std::int64_t Experiment::bytes_needed(const ModelConfig& config, const ExperimentRequest& request) {
  std::int64_t bytes = 0;
  for (const auto& [name, sites] : sites_of_runs(request)) {
    const auto run = request.runs.find(name);
    bytes += RunRecord::bytes_needed(config, std::ssize(run == request.runs.end() ? request.ids : run->second), sites);
  }
  return bytes;
}

Edit parse_receiver(std::string_view text) {
  // What a receiver holds is put in place of the clean run's value, as `patch` does.
  try {
    return parse_edit(fmt::format("patch {} from={}", text, kClean));
  } catch (const Error& error) {
    throw Error(ErrorCode::usage, fmt::format("receiver '{}' is not SITE [key=value ...]", text),
                "sites are those of patch, without from=, for instance: q layer=9 head=9 row=-1");
  }
}

namespace {

// For path patching: the z of every head as in the clean run, but where the edits write it or what it is made from, and
// where a receiver holds it.
std::vector<Cells> kept_heads(const Experiment& experiment, std::span<const Cells> edits) {
  const ModelConfig& c = experiment.model().config();
  const std::int64_t T = experiment.tokens(), group = c.heads / c.kv_heads;
  std::vector<bool> written(static_cast<std::size_t>(c.layers * c.heads * T));
  const auto write = [&](std::int64_t layer, std::int64_t head, std::int64_t row) {
    written[(layer * c.heads + head) * T + row] = true;
  };
  for (const Cells& cells : edits) {
    const bool keys = cells.site == EditSite::k || cells.site == EditSite::v;
    if (!keys && !has(cells.site, Selector::head)) continue;
    for (const std::int64_t layer : cells.layers)
      for (const std::int64_t head : cells.heads)
        for (const std::int64_t position : cells.positions) {
          if (!keys) write(layer, head, position);
          // All heads of the group, in all rows that may read it.
          const KeyRange readers = rows_that_see(c, layer, position, T);
          for (std::int64_t h = head * group; keys && h < (head + 1) * group; ++h)
            for (std::int64_t row = readers.begin; row < readers.end; ++row) write(layer, h, row);
        }
  }
  for (const Cells& cells : experiment.resolve(experiment.receivers())) {
    if (cells.site != EditSite::z && cells.site != EditSite::attn_out) continue;
    for (const std::int64_t layer : cells.layers)
      for (const std::int64_t row : cells.positions)
        for (std::int64_t head = 0; head < c.heads; ++head)
          if (cells.site == EditSite::attn_out || std::binary_search(cells.heads.begin(), cells.heads.end(), head))
            write(layer, head, row);
  }
  const Edit keep = parse_edit("patch z from=clean");
  const Cells all = experiment.resolve(std::span(&keep, 1))[0];
  std::vector<Cells> kept;
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    for (std::int64_t head = 0; head < c.heads; ++head) {
      Cells cells = all;
      cells.layers = {layer};
      cells.heads = {head};
      std::erase_if(cells.positions, [&](std::int64_t row) { return written[(layer * c.heads + head) * T + row]; });
      if (!cells.positions.empty()) kept.push_back(std::move(cells));
    }
  }
  return kept;
}

}  // namespace

PatchResult before_edits(const Measure& measure, std::optional<double> contrast) {
  return {.base = measure.base(),
          .edited = 0,
          .contrast = contrast,
          .recovery = {},
          .receipts = {},
          .before = measure.clean_logits(),
          .after = std::vector<float>(measure.clean_logits().size()),
          .received = {},
          .pattern = {},
          .divergence = {}};
}

PatchResult patch(const Experiment& experiment, Progress* progress) {
  const Model& model = experiment.model();
  const Measure& measure = experiment.measure();
  std::vector<Cells> cells = experiment.resolve(experiment.edits());
  PatchResult result = before_edits(measure, experiment.contrast());
  std::optional<RunRecord> sent;
  if (!experiment.receivers().empty()) {
    std::vector<Cells> sending = kept_heads(experiment, cells);
    const auto kept = static_cast<std::ptrdiff_t>(sending.size());
    sending.insert(sending.end(), cells.begin(), cells.end());
    EditTap edits(model.config(), {std::span<const Cells>(sending)});
    sent.emplace(model, experiment.ids(), sites_needed(experiment.receivers()).at(kClean), progress, &edits);
    result.receipts.assign(edits.receipts()[0].begin() + kept, edits.receipts()[0].end());
    cells = experiment.resolve(experiment.receivers());
    for (Cells& receiver : cells) receiver.from = &*sent;
  }
  const bool about_weights =
      std::any_of(cells.begin(), cells.end(), [](const Cells& c) { return PatternDistanceTap::about_weights(c.site); });
  // Asked for the patterns it would make, without leaving receipts.
  EditTap maker(model.config(), {std::span<const Cells>(cells)});
  PatternDistanceTap distance(model.config(), experiment.clean(), cells, maker);
  const WholeRun run = whole_run(model, experiment.ids(), cells, measure, experiment.row(),
                                 about_weights ? &distance : nullptr, progress);
  (sent ? result.received : result.receipts) = run.result.receipts;
  result.edited = run.result.value;
  if (about_weights) result.pattern = distance.result();
  if (model.config().head) {
    logits(model, run.resid.view(), View<float, 2>(result.after.data(), {1, std::ssize(result.after)}));
    result.divergence = divergence(result.before, result.after);
  } else {
    result.divergence = {std::nan(""), std::nan(""), std::nan("")};
  }
  if (result.contrast && *result.contrast != result.base)
    result.recovery = (result.edited - *result.contrast) / (result.base - *result.contrast);
  return result;
}

}  // namespace regard
