#pragma once
// What the answer of an encoder-decoder depends on, with what a report needs beside it.

#include <cstdint>
#include <optional>
#include <vector>

#include "intervention/two_texts_why.h"
#include "report/effect_words.h"
#include "report/output.h"
#include "report/page.h"
#include "report/results.h"

namespace regard {

struct TwoTextWhyReport {
  ModelSummary model;
  std::vector<TokenPiece> source, tokens;  // tokens: of the decoder's text
  MeasuredBy by;
  TwoTextWhy why;
  std::vector<Candidate> next = {};    // the likeliest after the metric's row
  std::optional<double> seconds = {};  // that it took; a file does not say, so that its bytes are the same
};

void write_json(Output& out, const TwoTextWhyReport& report);
// One line per position of the source, then of the decoder's text.
void write_csv(Output& out, const TwoTextWhyReport& report);

struct TwoTextWhyPageOptions {
  int width = 80;
  bool coloured = true;
  std::size_t most_tokens = 8, most_heads = 4;  // of each part
};
// Three parts: the source as the decoder reads it, the source as it is encoded, the decoder's own text.
Page why_page(const TwoTextWhyReport& report, const TwoTextWhyPageOptions& options);

}  // namespace regard
