#pragma once
// What a sweep found, with what a report needs beside it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "intervention/sweep.h"
#include "intervention/sweep_plan.h"
#include "report/effect_words.h"
#include "report/output.h"
#include "report/page.h"
#include "report/results.h"

namespace regard {

struct SweepReport {
  ModelSummary model;
  std::vector<TokenPiece> tokens;
  std::int64_t row = 0;  // where the metric was measured; -1: over all rows
  MeasuredBy by;
  double base = 0;
  std::vector<std::string> edits;  // as receipts name them
  std::vector<Selector> each;
  std::vector<std::int64_t> shape;
  std::vector<double> effect;     // nested like shape; NaN where an edit matches nothing (an edge that the mask hides)
  std::vector<Receipt> receipts;  // of each edit, summed over the what-ifs
  std::int64_t what_ifs = 0;
  // Of an encoder-decoder, whose `tokens` are the decoder's; and of each axis, whether it runs over the source.
  std::vector<TokenPiece> source = {};
  std::vector<bool> of_source = {};
};

// seconds: nothing in a file, which has the same bytes however long the work took and however often it was stopped.
void write_json(Output& out, const SweepReport& report, std::optional<double> seconds);
void write_csv(Output& out, const SweepReport& report);
void write_npz(Output& out, const SweepReport& report);

Page sweep_page(const SweepReport& report, double seconds, int width);

}  // namespace regard
