#pragma once
// One run with edits, with what a report needs beside it.

#include <string>
#include <vector>

#include "intervention/experiment.h"
#include "report/effect_words.h"
#include "report/output.h"
#include "report/page.h"
#include "report/results.h"

namespace regard {

struct PatchReport {
  ModelSummary model;
  std::vector<TokenPiece> tokens;
  std::int64_t row = 0;  // where the metric was measured; -1: over all rows
  MeasuredBy by;
  std::vector<std::string> edits;      // as receipts name them, in the order of patch.receipts
  std::vector<std::string> receivers;  // as typed, in the order of patch.received
  PatchResult patch;
  std::vector<Candidate> before, after;  // the likeliest of each
  std::vector<TokenPiece> source = {};   // of an encoder-decoder, whose `tokens` are the decoder's
};

// A token that is likely before or after, and what became of it.
struct Shift {
  TokenPiece token;
  double before = 0, after = 0;  // log-probabilities
  float logit_before = 0, logit_after = 0;
};
// Of the `most` likeliest before, in their order, then those that are among the likeliest only after.
std::vector<Shift> shifts(const PatchReport& report, std::size_t most);

void write_json(Output& out, const PatchReport& report);
// One line per token of shifts().
void write_csv(Output& out, const PatchReport& report);

struct PatchPageOptions {
  int width = 80;
  std::size_t most_tokens = 8;  // of each side
};
Page patch_page(const PatchReport& report, const PatchPageOptions& options);

}  // namespace regard
