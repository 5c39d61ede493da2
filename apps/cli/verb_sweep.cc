#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "destination.h"
#include "inputs.h"
#include "intervention/sweep.h"
#include "intervention/sweep_journal.h"
#include "intervention/sweep_plan.h"
#include "intervention_options.h"
#include "memory.h"
#include "progress_line.h"
#include "report/estimate.h"
#include "report/phrases.h"
#include "report/sweep_result.h"
#include "tensor/error.h"
#include "two_texts.h"
#include "verbs.h"
#include "weights/catalogue.h"
#include "weights/sha256.h"

namespace regard::cli {
namespace {

constexpr double kLongSeconds = 5;             // what takes longer is announced
constexpr std::int64_t kMostBatchRows = 2048;  // more rows make the products no faster

struct Choice {
  Options options;
  InterventionOptions intervention;
  std::optional<std::string> each, memory;
  bool full = false;
};

bool parse(Choice& choice, const Words& words) {
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

// Everything that decides the results, and nothing that does not (threads, targets, batches).
std::string fingerprint(const Choice& choice, const ExperimentRequest& request, const SweepReport& report,
                        const std::vector<std::string>& files) {
  Sha256 sum;
  const auto add = [&](const std::string& text) {
    const std::uint64_t size = text.size();
    sum.update(&size, sizeof(size));
    sum.update(text.data(), text.size());
  };
  const auto add_ids = [&](const std::vector<std::int32_t>& ids) {
    add(std::string(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int32_t)));
  };
  add(version());
  for (const std::string& file : files)
    add(fmt::format("{} {} {}", std::filesystem::weakly_canonical(file).string(), std::filesystem::file_size(file),
                    std::filesystem::last_write_time(file).time_since_epoch().count()));
  add(fmt::format("{} {} {}", static_cast<int>(report.by.metric.kind), report.by.metric.token,
                  report.by.metric.against));
  add_ids(report.by.metric.ids);
  add(fmt::format("{} {}", report.row, choice.full));
  add_ids(request.ids);
  for (const auto& [name, ids] : request.runs) {
    add(name);
    add_ids(ids);
  }
  for (const std::string& edit : report.edits) add(edit);
  for (const Selector selector : report.each) add(std::string(name(selector)));
  return sum.hex();
}

// Rows that may pass together in the memory there is.
std::int64_t batch_rows(const Choice& choice, const Model& model, std::int64_t tokens, std::int64_t fixed) {
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

}  // namespace

int run_sweep(const Words& words) {
  Choice choice;
  if (!parse(choice, words)) return kDone;
  const Options& options = choice.options;
  if (choice.intervention.edits.empty())
    throw Error(ErrorCode::usage, "no edit to sweep", "give --edit, for instance --edit \"zero z\" --each layer,head");
  if (!choice.each)
    throw Error(
        ErrorCode::usage, "--each is missing",
        "say which selectors run over all their values: --each layer,head (one run with an edit: regard patch)");
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

  SweepReport report{
      .model = summary(options.model_name(), model.config(), path),
      .tokens = token_pieces(model.tokenizer(), request.ids),
      .row = experiment.measure().of_all_rows() ? -1 : experiment.row(),
      .by = measured_by(experiment.measure().metric(), model.tokenizer()),
      .base = experiment.measure().base(),
      .edits = {},
      .each = plan.each(),
      .shape = plan.shape(),
      .effect = std::vector<double>(static_cast<std::size_t>(plan.count()), std::numeric_limits<double>::quiet_NaN()),
      .receipts = std::vector<Receipt>(request.edits.size()),
      .what_ifs = std::ssize(what_ifs)};
  for (const Edit& edit : request.edits) report.edits.push_back(to_string(edit));

  std::unique_ptr<SweepJournal> journal;
  std::vector<bool> done(static_cast<std::size_t>(plan.count()));
  const auto take = [&](const WhatIfResult& result) {
    done[result.index] = true;
    report.effect[result.index] = result.value - report.base;
    for (std::size_t e = 0; e < result.receipts.size(); ++e) report.receipts[e] += result.receipts[e];
  };
  if (!options.outputs.empty()) {
    journal = std::make_unique<SweepJournal>(options.outputs[0] + ".partial",
                                             fingerprint(choice, request, report, model.checkpoint().files),
                                             plan.count(), std::ssize(request.edits));
    for (const WhatIfResult& result : journal->done()) take(result);
    if (!journal->done().empty())
      remark(options, fmt::format("regard: {} of {} what-ifs were done before", grouped(std::ssize(journal->done())),
                                  grouped(report.what_ifs)));
  }
  std::vector<std::int64_t> left;
  double share = 0;
  for (const std::int64_t i : what_ifs) {
    if (done[i]) continue;
    left.push_back(i);
    share += choice.full ? 1 : passes(plan.cells(i), experiment);
  }
  const double seconds = share * estimated_seconds(model, {}, experiment.tokens());
  if (seconds > kLongSeconds)
    remark(options,
           fmt::format("regard: {} what-ifs take about {:.0f} s and {} beside the file", grouped(std::ssize(left)),
                       seconds, human_bytes(fixed + Sweep::bytes_for(model.config(), experiment.tokens(), rows))));

  // What a batch gave is kept before anything may stop the work.
  class Keeping final : public Progress {
   public:
    Keeping(SweepJournal* journal, Progress& next) : journal_(journal), next_(next) {}
    void at(std::string_view what, std::int64_t done, std::int64_t total) override {
      if (journal_ != nullptr) journal_->flush();
      next_.at(what, done, total);
    }

   private:
    SweepJournal* journal_;
    Progress& next_;
  } keeping(journal.get(), progress);
  const auto found = [&](WhatIfResult result) {
    result.index = left[result.index];
    take(result);
    if (journal) journal->add(result);
  };
  if (choice.full) {
    for (std::int64_t i = 0; i < std::ssize(left); ++i) {
      WhatIfResult result =
          whole_run(model, request.ids, plan.cells(left[i]), experiment.measure(), experiment.row(), nullptr, nullptr)
              .result;
      result.index = i;
      found(std::move(result));
      keeping.at("what-ifs", i + 1, std::ssize(left));
    }
  } else {
    Sweep sweep(model, experiment.clean(), experiment.measure(),
                {.row = experiment.row(), .batch_rows = rows, .progress = &keeping});
    sweep.run(
        std::ssize(left), [&](std::int64_t i) { return plan.cells(left[i]); }, found);
  }
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  try {
    model.checkpoint().check_intact();
  } catch (const Error&) {  // what was done is not to be gone on with
    if (journal) journal->remove();
    throw;
  }
  progress.clear();

  // A file's bytes do not say how long the work took: stopped or not, they are the same.
  deliver(options, {.json = [&](Output& out) { write_json(out, report, {}); },
                    .printed_json = [&](Output& out) { write_json(out, report, took); },
                    .page = [&](const Terminal& terminal) { return sweep_page(report, took, terminal.columns); },
                    .files = {{".npz", [&](Output& out) { write_npz(out, report); }},
                              {".csv", [&](Output& out) { write_csv(out, report); }}}});
  if (journal) journal->remove();
  return kDone;
}

}  // namespace regard::cli
