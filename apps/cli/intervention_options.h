#pragma once
// What generate, read, patch, sweep and why share: edits, other runs, and what is measured.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "intervention/experiment.h"
#include "intervention/placed_edit.h"
#include "options.h"

namespace regard::cli {

struct InterventionOptions {
  std::vector<std::string> edits, runs, runs_ids;
  std::optional<std::string> contrast, contrast_ids;
  std::optional<std::string> metric, token, against;
  std::optional<std::int64_t> row;
  std::optional<std::string> decoder, decoder_ids;  // the decoder's text of an encoder-decoder

  void declare_edits(Arguments& arguments);     // --edit, --run, --run-ids
  void declare_contrast(Arguments& arguments);  // --contrast, --contrast-ids
  void declare_metric(Arguments& arguments);    // --metric, --token, --against, --at
  void declare_decoder(Arguments& arguments);   // --decoder, --decoder-ids

  // The prompt, the runs, the edits and the metric, made with the model's tokenizer. Error{usage} for what does not fit
  // together, Error{bad_input} for ids out of range and texts longer than the model's context.
  ExperimentRequest request(const Options& options, const Model& model) const;
  // The parts of it that reading under edits needs too.
  std::vector<Edit> chosen_edits() const;
  std::vector<PlacedEdit> chosen_placed_edits() const;  // of an encoder-decoder
  // Messages where the prompt is one (--chat): edits take values from the same place of both.
  std::map<std::string, std::vector<std::int32_t>> chosen_runs(const Options& options, const Model& model) const;
  Metric chosen_metric(const Model& model) const;
  // Error{usage} for a run that no edit takes values from. contrast_compares: --contrast has a use without one.
  void check_runs_are_used(bool contrast_compares) const;

 private:
  void choose_row(ExperimentRequest& request, const Model& model) const;
};

}  // namespace regard::cli
