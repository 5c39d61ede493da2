#include "journaled_sweep.h"

#include <fmt/format.h>

#include <limits>
#include <memory>

#include "destination.h"
#include "inputs.h"
#include "intervention/sweep_journal.h"
#include "report/phrases.h"
#include "tensor/error.h"
#include "verbs.h"

namespace regard::cli {
namespace {

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

// The report as it fills, and which of its what-ifs are done.
class Filling {
 public:
  explicit Filling(SweepReport& report) : report_(report) {
    std::size_t count = 1;
    for (const std::int64_t extent : report.shape) count *= static_cast<std::size_t>(extent);
    report.effect.assign(count, std::numeric_limits<double>::quiet_NaN());
    report.receipts.assign(report.edits.size(), {});
    done_.resize(count);
  }
  void take(const WhatIfResult& result) {
    done_[static_cast<std::size_t>(result.index)] = true;
    report_.effect[static_cast<std::size_t>(result.index)] = result.value - report_.base;
    for (std::size_t e = 0; e < result.receipts.size(); ++e) report_.receipts[e] += result.receipts[e];
  }
  std::vector<std::int64_t> left_of(const std::vector<std::int64_t>& what_ifs) const {
    std::vector<std::int64_t> left;
    for (const std::int64_t i : what_ifs)
      if (!done_[static_cast<std::size_t>(i)]) left.push_back(i);
    return left;
  }
  std::int64_t count() const { return std::ssize(report_.effect); }

 private:
  SweepReport& report_;
  std::vector<bool> done_;
};

// A file's bytes do not say how long the work took: stopped or not, they are the same.
void deliver_sweep(const Options& options, const SweepReport& report, double took) {
  deliver(options, {.json = [&](Output& out) { write_json(out, report, {}); },
                    .printed_json = [&](Output& out) { write_json(out, report, took); },
                    .page = [&](const Terminal& terminal) { return sweep_page(report, took, terminal.columns); },
                    .files = {{".npz", [&](Output& out) { write_npz(out, report); }},
                              {".csv", [&](Output& out) { write_csv(out, report); }}}});
}

}  // namespace

Fingerprint::Fingerprint(std::string_view kind, const std::vector<std::string>& files) {
  add(fmt::format("{}{}", version(), kind));
  for (const std::string& file : files)
    add(fmt::format("{} {} {}", std::filesystem::weakly_canonical(file).string(), std::filesystem::file_size(file),
                    std::filesystem::last_write_time(file).time_since_epoch().count()));
}

void Fingerprint::add(std::string_view text) {
  const std::uint64_t size = text.size();
  sum_.update(&size, sizeof(size));
  sum_.update(text.data(), text.size());
}

void Fingerprint::add(const std::vector<std::int32_t>& ids) {
  add(std::string_view(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int32_t)));
}

void Fingerprint::add(const std::map<std::string, std::vector<std::int32_t>>& runs) {
  for (const auto& [name, ids] : runs) {
    add(std::string_view(name));
    add(ids);
  }
}

void Fingerprint::add(const SweepReport& report) {
  for (const std::string& edit : report.edits) add(std::string_view(edit));
  for (const Selector selector : report.each) add(name(selector));
}

SweepReport planned_report(const Options& options, const Model& model, const std::filesystem::path& path,
                           const Measure& measure, const SweepAxes& plan) {
  SweepReport report;
  report.model = summary(options.model_name(), model.config(), path);
  report.by = measured_by(measure.metric(), model.tokenizer());
  report.base = measure.base();
  report.each = plan.each();
  report.shape = plan.shape();
  return report;
}

int run_journaled(JournaledSweep sweep, const RunWhatIfs& run) {
  const Options& options = sweep.options;
  SweepReport& report = sweep.report;
  report.what_ifs = std::ssize(sweep.what_ifs);
  Filling filling(report);
  std::unique_ptr<SweepJournal> journal;
  if (!options.outputs.empty()) {
    journal = std::make_unique<SweepJournal>(options.outputs[0] + ".partial", sweep.fingerprint, filling.count(),
                                             std::ssize(report.edits));
    for (const WhatIfResult& result : journal->done()) filling.take(result);
    if (!journal->done().empty())
      remark(options, fmt::format("regard: {} of {} what-ifs were done before", grouped(std::ssize(journal->done())),
                                  grouped(report.what_ifs)));
  }
  const std::vector<std::int64_t> left = filling.left_of(sweep.what_ifs);
  Keeping keeping(journal.get(), sweep.progress);
  const auto found = [&](WhatIfResult result) {
    result.index = left[static_cast<std::size_t>(result.index)];
    filling.take(result);
    if (journal) journal->add(result);
  };
  run(left, found, keeping);
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - sweep.start).count();
  try {
    sweep.model.checkpoint().check_intact();
  } catch (const Error&) {  // what was done is not to be gone on with
    if (journal) journal->remove();
    throw;
  }
  sweep.progress.clear();
  deliver_sweep(options, report, took);
  if (journal) journal->remove();
  return kDone;
}

}  // namespace regard::cli
