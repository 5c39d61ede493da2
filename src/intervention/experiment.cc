#include "intervention/experiment.h"

#include "intervention/sweep.h"
#include "model/forward.h"
#include "reading/selection.h"
#include "tensor/error.h"

namespace regard {
namespace {

// Everything to be kept, by run.
std::map<std::string, std::set<Site>> sites_of_runs(const ExperimentRequest& request) {
  std::map<std::string, std::set<Site>> sites = sites_needed(request.edits);
  sites[kClean].insert(request.sites.begin(), request.sites.end());
  for (const auto& [name, ids] : request.runs) sites[name];
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
  const std::vector<Cells> cells = resolve(request_.edits);
  if (!partial) check(request_.edits, cells, config);

  for (const auto& [name, sites] : sites_of_runs(request_)) {
    const std::vector<std::int32_t>& ids = name == kClean ? request_.ids : request_.runs.at(name);
    runs_[name].record = &records_.try_emplace(name, model, ids, sites, progress).first->second;
  }
  measure_.emplace(model, request_.metric,
                   std::span(&clean().final_resid()(row_, 0), static_cast<std::size_t>(config.width)));
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
  return measure_->of(resid.slice(resid.shape[0] - 1, resid.shape[0]))[0];
}

std::int64_t Experiment::bytes_needed(const ModelConfig& config, const ExperimentRequest& request) {
  std::int64_t bytes = 0;
  for (const auto& [name, sites] : sites_of_runs(request)) {
    const auto run = request.runs.find(name);
    bytes += RunRecord::bytes_needed(config, std::ssize(run == request.runs.end() ? request.ids : run->second), sites);
  }
  return bytes;
}

PatchResult patch(const Experiment& experiment) {
  const Model& model = experiment.model();
  const std::vector<Cells> cells = experiment.resolve(experiment.edits());
  Tensor<float, 2> resid;
  const WhatIfResult run = whole_run(model, experiment.ids(), cells, experiment.measure(), experiment.row(), &resid);
  PatchResult result{.base = experiment.measure().base(),
                     .edited = run.value,
                     .contrast = experiment.contrast(),
                     .recovery = {},
                     .receipts = run.receipts,
                     .before = experiment.measure().clean_logits(),
                     .after = std::vector<float>(experiment.measure().clean_logits().size()),
                     .divergence = {}};
  logits(model, resid.view(), View<float, 2>(result.after.data(), {1, std::ssize(result.after)}));
  result.divergence = divergence(result.before, result.after);
  if (result.contrast && *result.contrast != result.base)
    result.recovery = (result.edited - *result.contrast) / (result.base - *result.contrast);
  return result;
}

}  // namespace regard
