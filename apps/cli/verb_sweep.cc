#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "destination.h"
#include "inputs.h"
#include "intervention/sweep.h"
#include "intervention/sweep_plan.h"
#include "intervention_options.h"
#include "journaled_sweep.h"
#include "memory.h"
#include "progress_line.h"
#include "report/estimate.h"
#include "report/phrases.h"
#include "tensor/error.h"
#include "two_texts.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kMostBatchRows = 2048;  // more rows make the products no faster

struct SweepChoice {
  Options options;
  InterventionOptions intervention;
  std::optional<std::string> each, memory;
  bool full = false;
};

bool parse(SweepChoice& choice, const Words& words) {
  Arguments arguments(
      "sweep", "Thousands of what-ifs: an edit at every layer, head, row or key, each exactly as `patch` makes it.",
      "regard sweep smollm2 -p \"When Mary and John went to the store, John gave a drink to\" \\\n"
      "  --edit \"zero z row=-1\" --each layer,head\n"
      "With -o FILE what is done is kept in FILE.partial: after Ctrl-C the same command goes on.");
  choice.options.declare_model(arguments);
  choice.options.declare_text(arguments);
  choice.intervention.declare_edits(arguments);
  choice.intervention.declare_contrast(arguments);
  choice.intervention.declare_metric(arguments);
  choice.intervention.declare_decoder(arguments);
  arguments.text("--each", choice.each, "A,B",
                 "selectors left out of the edit that run over all their values: layer, head, kv_head, row, key");
  arguments.text("--memory", choice.memory, "BYTES",
                 "most to take beside the file, 500M or 2G (default: half of what is free)");
  arguments.flag("--full", choice.full, "compute every what-if from its tokens, to check the sweep");
  choice.options.declare_output(arguments, {".json", ".npz", ".csv"});
  choice.options.declare_machine(arguments);
  return choice.options.parse(arguments, words);
}

std::string fingerprint(const SweepChoice& choice, const ExperimentRequest& request, const SweepReport& report,
                        const std::vector<std::string>& files) {
  const Metric& metric = report.by.metric;
  Fingerprint sum("", files);
  sum.add(fmt::format("{} {} {}", static_cast<int>(metric.kind), metric.token, metric.against));
  sum.add(metric.ids);
  sum.add(fmt::format("{} {}", report.row, choice.full));
  sum.add(request.ids);
  sum.add(request.runs);
  sum.add(report);
  return sum.hex();
}

// Rows that may pass together in the memory there is.
std::int64_t batch_rows(const SweepChoice& choice, const Model& model, std::int64_t tokens, std::int64_t fixed) {
  const std::int64_t memory = choice.memory ? parse_bytes("--memory", *choice.memory) : free_memory() / 2;
  std::int64_t rows = kMostBatchRows;
  const auto needed = [&] { return fixed + Sweep::bytes_for(model.config(), tokens, rows); };
  while (rows > 1 && needed() > memory) rows /= 2;
  rows = std::max(rows, tokens);  // one what-if must fit
  if (needed() > memory)
    throw Error(ErrorCode::bad_input,
                fmt::format("the sweep needs {} and may take {}", human_bytes(needed()), human_bytes(memory)),
                fmt::format("give --memory {}M or more, or use a shorter text", (needed() >> 20) + 1));
  return rows;
}

// Row-layers that pass, as a share of the clean run's own.
double passes(const std::vector<Cells>& cells, const Experiment& experiment) {
  std::int64_t layer = INT64_MAX, row = INT64_MAX;
  for (const Cells& c : cells) {
    layer = std::min(layer, c.layers.front());
    row = std::min(row, c.positions.front());
  }
  const ModelConfig& config = experiment.model().config();
  const auto L = static_cast<double>(config.layers), T = static_cast<double>(experiment.tokens());
  const double end = experiment.measure().of_all_rows() ? T : static_cast<double>(experiment.row() + 1);
  const double rows = config.causal ? std::max(0.0, end - static_cast<double>(row)) : T;
  return (L - static_cast<double>(layer)) / L * rows / T;
}

// Says what is left, where it will take long. bytes: of a batch and all beside it.
void announce(const SweepChoice& choice, const Experiment& experiment, const SweepPlan& plan,
              const std::vector<std::int64_t>& left, std::int64_t bytes) {
  double share = 0;
  for (const std::int64_t i : left) share += choice.full ? 1 : passes(plan.cells(i), experiment);
  const double seconds = share * estimated_seconds(experiment.model(), {}, experiment.tokens());
  if (seconds <= kLongSeconds) return;
  remark(choice.options, fmt::format("regard: {} what-ifs take about {:.0f} s and {} beside the file",
                                     grouped(std::ssize(left)), seconds, human_bytes(bytes)));
}

// Every what-if from its tokens.
void run_whole(const Experiment& experiment, const SweepPlan& plan, const std::vector<std::int64_t>& left,
               const std::function<void(WhatIfResult)>& found, Progress& progress) {
  for (std::int64_t i = 0; i < std::ssize(left); ++i) {
    WhatIfResult result = whole_run(experiment.model(), experiment.ids(), plan.cells(left[i]), experiment.measure(),
                                    experiment.row(), nullptr, nullptr)
                              .result;
    result.index = i;
    found(std::move(result));
    progress.at("what-ifs", i + 1, std::ssize(left));
  }
}

// What was asked must be whole before a model is looked at.
void check(const SweepChoice& choice) {
  if (choice.intervention.edits.empty())
    throw Error(ErrorCode::usage, "no edit to sweep", "give --edit, for instance --edit \"zero z\" --each layer,head");
  if (!choice.each)
    throw Error(
        ErrorCode::usage, "--each is missing",
        "say which selectors run over all their values: --each layer,head (one run with an edit: regard patch)");
}

}  // namespace

int run_sweep(const Words& words) {
  SweepChoice choice;
  if (!parse(choice, words)) return kDone;
  const Options& options = choice.options;
  check(choice);
  const auto path = locate(options.model_name());
  const Model model = load_model(path);
  if (model.encoder() != nullptr) {
    if (choice.full || choice.memory)
      throw Error(ErrorCode::unsupported,
                  fmt::format("a sweep of an encoder-decoder has no {}", choice.full ? "--full" : "--memory"),
                  "each of its what-ifs is computed from its tokens, a few together");
    return sweep_two_texts(options, choice.intervention, *choice.each, model, path);
  }
  ExperimentRequest request = choice.intervention.request(options, model);
  request.sites = Sweep::sites();
  const std::int64_t kept = Experiment::bytes_needed(model.config(), request);
  ProgressLine progress(options.shows_progress());
  const auto start = std::chrono::steady_clock::now();
  Runs lengths = {{kClean, {std::ssize(request.ids), nullptr}}};  // enough to plan by
  for (const auto& [name, ids] : request.runs) lengths[name].tokens = std::ssize(ids);
  const SweepPlan planned(request.edits, *choice.each, model.config(), lengths);
  // Beside a batch: the runs, and of each what-if its effect, its index here and below, and its place in the order.
  const std::int64_t fixed =
      kept + planned.count() * static_cast<std::int64_t>(sizeof(double) + 5 * sizeof(std::int64_t));
  const std::int64_t rows = batch_rows(choice, model, std::ssize(request.ids), fixed);
  const std::vector<std::int64_t> what_ifs = planned.matching(&progress);
  const Experiment experiment(model, request, true, &progress);
  const SweepPlan plan(request.edits, *choice.each, model.config(), experiment.runs());
  progress.clear();

  SweepReport report = planned_report(options, model, path, experiment.measure(), plan);
  report.tokens = token_pieces(model.tokenizer(), request.ids);
  report.row = experiment.measure().of_all_rows() ? -1 : experiment.row();
  for (const Edit& edit : request.edits) report.edits.push_back(to_string(edit));

  return run_journaled(
      {.options = options,
       .model = model,
       .progress = progress,
       .start = start,
       .fingerprint = fingerprint(choice, request, report, model.checkpoint().files),
       .what_ifs = what_ifs,
       .report = std::move(report)},
      [&](const std::vector<std::int64_t>& left, const std::function<void(WhatIfResult)>& found, Progress& keeping) {
        announce(choice, experiment, plan, left, fixed + Sweep::bytes_for(model.config(), experiment.tokens(), rows));
        if (choice.full) return run_whole(experiment, plan, left, found, keeping);
        Sweep sweep(model, experiment.clean(), experiment.measure(),
                    {.row = experiment.row(), .batch_rows = rows, .progress = &keeping});
        sweep.run(
            std::ssize(left), [&](std::int64_t i) { return plan.cells(left[i]); }, found);
      });
}

}  // namespace regard::cli
