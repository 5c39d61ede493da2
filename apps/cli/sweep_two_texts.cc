#include <fmt/format.h>

#include <chrono>

#include "intervention/two_texts_plan.h"
#include "journaled_sweep.h"
#include "two_texts.h"

namespace regard::cli {
namespace {

std::string fingerprint(const TwoTextRequest& request, const SweepReport& report,
                        const std::vector<std::string>& files) {
  Fingerprint sum(" two texts", files);
  sum.add(fmt::format("{} {}", report.by.text, report.row));
  sum.add(request.source);
  sum.add(request.target);
  sum.add(request.runs);
  sum.add(report);
  return sum.hex();
}

}  // namespace

int sweep_two_texts(const Options& options, const InterventionOptions& intervention, const std::string& each,
                    const Model& model, const std::filesystem::path& path) {
  ProgressLine progress(options.shows_progress());
  const auto start = std::chrono::steady_clock::now();
  const TwoTextExperiment experiment(model, two_text_request(options, intervention, model), true, &progress);
  const TwoTextRequest& request = experiment.request();
  const TwoTextPlan plan(experiment, each);
  SweepReport report = planned_report(options, model, path, experiment.measure(), plan);
  report.tokens = token_pieces(model.tokenizer(), request.target);
  report.row = experiment.row();
  report.source = token_pieces(model.tokenizer(), request.source);
  report.of_source = plan.of_source();
  for (const PlacedEdit& edit : request.edits) report.edits.push_back(to_string(edit));

  return run_journaled(
      {.options = options,
       .model = model,
       .progress = progress,
       .start = start,
       .fingerprint = fingerprint(request, report, model.checkpoint().files),
       .what_ifs = plan.matching(&progress),
       .report = std::move(report)},
      [&](const std::vector<std::int64_t>& left, const std::function<void(WhatIfResult)>& found, Progress& keeping) {
        experiment.run(
            std::ssize(left), [&](std::int64_t i) { return plan.edits(left[static_cast<std::size_t>(i)]); },
            [&](const TwoTextExperiment::Found& one) { found(one.result); }, &keeping);
      });
}

}  // namespace regard::cli
