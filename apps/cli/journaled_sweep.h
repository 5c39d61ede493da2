#pragma once
// A sweep from its plan to its result: what was done before is taken from the journal beside -o, the rest is run, and
// what comes is kept at once, so that the same command goes on wherever it was stopped.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "intervention/metric.h"
#include "intervention/sweep.h"
#include "intervention/sweep_axes.h"
#include "model/model.h"
#include "options.h"
#include "progress_line.h"
#include "report/sweep_result.h"
#include "weights/sha256.h"

namespace regard::cli {

// Everything that decides the results, and nothing that does not (threads, targets, batches): a journal goes on only
// with the sweep that it belongs to.
class Fingerprint {
 public:
  // kind: of the program's sweeps. files: of the model, as they are now.
  Fingerprint(std::string_view kind, const std::vector<std::string>& files);
  void add(std::string_view text);
  void add(const std::vector<std::int32_t>& ids);
  void add(const std::map<std::string, std::vector<std::int32_t>>& runs);
  // Its edits and axes.
  void add(const SweepReport& report);
  std::string hex() { return sum_.hex(); }

 private:
  Sha256 sum_;
};

// What a report says before anything is found: the model, what is measured, and the axes.
SweepReport planned_report(const Options& options, const Model& model, const std::filesystem::path& path,
                           const Measure& measure, const SweepAxes& plan);

struct JournaledSweep {
  const Options& options;
  const Model& model;
  ProgressLine& progress;
  std::chrono::steady_clock::time_point start;
  std::string fingerprint;
  std::vector<std::int64_t> what_ifs;  // places in the report's effect, ascending
  SweepReport report;                  // all but what is found
};
// Runs the what-ifs that are left. found: a result with its index among them. progress: to be told as results come,
// which keeps what came before.
using RunWhatIfs = std::function<void(const std::vector<std::int64_t>& left,
                                      const std::function<void(WhatIfResult)>& found, Progress& progress)>;

// Runs what is left of it and delivers the whole. Error{bad_input, io} as SweepJournal, and when the model's files
// changed meanwhile: then the journal is gone too.
int run_journaled(JournaledSweep sweep, const RunWhatIfs& run);

}  // namespace regard::cli
