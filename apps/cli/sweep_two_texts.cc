#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>

#include "destination.h"
#include "inputs.h"
#include "intervention/sweep_journal.h"
#include "intervention/two_texts_plan.h"
#include "progress_line.h"
#include "report/phrases.h"
#include "report/sweep_result.h"
#include "tensor/error.h"
#include "two_texts.h"
#include "verbs.h"
#include "weights/sha256.h"

namespace regard::cli {
namespace {

// Everything that decides the results, and nothing that does not.
std::string fingerprint(const TwoTextRequest& request, const SweepReport& report,
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
  add(fmt::format("{} two texts", version()));
  for (const std::string& file : files)
    add(fmt::format("{} {} {}", std::filesystem::weakly_canonical(file).string(), std::filesystem::file_size(file),
                    std::filesystem::last_write_time(file).time_since_epoch().count()));
  add(fmt::format("{} {}", report.by.text, report.row));
  add_ids(request.source);
  add_ids(request.target);
  for (const auto& [name, source] : request.runs) {
    add(name);
    add_ids(source);
  }
  for (const std::string& edit : report.edits) add(edit);
  for (const Selector selector : report.each) add(std::string(name(selector)));
  return sum.hex();
}

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
};

}  // namespace

int sweep_two_texts(const Options& options, const InterventionOptions& intervention, const std::string& each,
                    const Model& model, const std::filesystem::path& path) {
  ProgressLine progress(options.shows_progress());
  const auto start = std::chrono::steady_clock::now();
  const TwoTextExperiment experiment(model, two_text_request(options, intervention, model), true, &progress);
  const TwoTextRequest& request = experiment.request();
  const TwoTextPlan plan(experiment, each);
  const std::vector<std::int64_t> what_ifs = plan.matching(&progress);
  SweepReport report{
      .model = summary(options.model_name(), model.config(), path),
      .tokens = token_pieces(model.tokenizer(), request.target),
      .row = experiment.row(),
      .by = measured_by(experiment.measure().metric(), model.tokenizer()),
      .base = experiment.measure().base(),
      .edits = {},
      .each = plan.each(),
      .shape = plan.shape(),
      .effect = std::vector<double>(static_cast<std::size_t>(plan.count()), std::numeric_limits<double>::quiet_NaN()),
      .receipts = std::vector<Receipt>(request.edits.size()),
      .what_ifs = std::ssize(what_ifs),
      .source = token_pieces(model.tokenizer(), request.source)};
  for (const PlacedEdit& edit : request.edits) report.edits.push_back(to_string(edit));
  for (std::size_t axis = 0; axis < plan.each().size(); ++axis) report.of_source.push_back(plan.of_source(axis));

  std::unique_ptr<SweepJournal> journal;
  std::vector<bool> done(static_cast<std::size_t>(plan.count()));
  const auto take = [&](const WhatIfResult& result) {
    done[static_cast<std::size_t>(result.index)] = true;
    report.effect[static_cast<std::size_t>(result.index)] = result.value - report.base;
    for (std::size_t e = 0; e < result.receipts.size(); ++e) report.receipts[e] += result.receipts[e];
  };
  if (!options.outputs.empty()) {
    journal = std::make_unique<SweepJournal>(options.outputs[0] + ".partial",
                                             fingerprint(request, report, model.checkpoint().files), plan.count(),
                                             std::ssize(request.edits));
    for (const WhatIfResult& result : journal->done()) take(result);
    if (!journal->done().empty())
      remark(options, fmt::format("regard: {} of {} what-ifs were done before", grouped(std::ssize(journal->done())),
                                  grouped(report.what_ifs)));
  }
  std::vector<std::int64_t> left;
  for (const std::int64_t i : what_ifs)
    if (!done[static_cast<std::size_t>(i)]) left.push_back(i);
  Keeping keeping(journal.get(), progress);
  experiment.run(
      std::ssize(left), [&](std::int64_t i) { return plan.edits(left[static_cast<std::size_t>(i)]); },
      [&](const TwoTextExperiment::Found& found) {
        WhatIfResult result = found.result;
        result.index = left[static_cast<std::size_t>(result.index)];
        take(result);
        if (journal) journal->add(result);
      },
      &keeping);
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  try {
    model.checkpoint().check_intact();
  } catch (const Error&) {  // what was done is not to be gone on with
    if (journal) journal->remove();
    throw;
  }
  progress.clear();
  deliver(options, {.json = [&](Output& out) { write_json(out, report, {}); },
                    .printed_json = [&](Output& out) { write_json(out, report, took); },
                    .page = [&](const Terminal& terminal) { return sweep_page(report, took, terminal.columns); },
                    .files = {{".npz", [&](Output& out) { write_npz(out, report); }},
                              {".csv", [&](Output& out) { write_csv(out, report); }}}});
  if (journal) journal->remove();
  return kDone;
}

}  // namespace regard::cli
