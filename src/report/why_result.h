#pragma once
// What an answer depends on, with what a report needs beside it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intervention/why.h"
#include "reading/sink.h"
#include "report/effect_words.h"
#include "report/output.h"
#include "report/page.h"
#include "report/results.h"

namespace regard {

struct WhyReport {
  ModelSummary model;
  std::vector<TokenPiece> tokens;
  std::vector<TokenPiece> contrast_tokens = {};  // empty: no contrast
  MeasuredBy by;
  WhyResult why;
  std::vector<Candidate> next = {};        // the likeliest after the metric's row
  std::optional<AttentionSink> sink = {};  // of the clean run
  std::optional<double> seconds = {};      // that it took; a file does not say, so that its bytes are the same
};

void write_json(Output& out, const WhyReport& report);
// One line per position.
void write_csv(Output& out, const WhyReport& report);

// ---- What the numbers say ----

// A token's cause is hide_from_all: what changes when no later row may read it.
//
// The sink is left out of every comparison: heads put weight there that they do not need, and a model whose sink is
// hidden breaks in ways that say nothing about the answer. It is told apart instead.
enum class Disagreement {
  read_not_used,  // high in attention, and it changes next to nothing
  used_not_read,  // low in attention, and it decides
};
struct Finding {
  std::int64_t position = 0;
  Disagreement kind = Disagreement::read_not_used;
  std::int64_t attention_rank = 0;  // from 1, among the compared positions
  double share_of_largest = 0;      // |cause| / the largest |cause|
};

struct WhyFindings {
  std::optional<std::int64_t> sink;    // when the metric's row sees it
  std::vector<std::int64_t> ranked;    // compared positions by falling |cause|
  double largest = 0;                  // |cause| among them
  std::vector<Finding> disagreements;  // read_not_used by falling attention, then used_not_read by falling |cause|
  // Spearman's rank correlation of a reading with |cause| over the compared positions; NaN for fewer than 3 of them or
  // where one side is constant.
  double attention = 0, rollout = 0, norm_weighted = 0;
};
WhyFindings find_out(const WhyReport& report);

// Spearman's rank correlation, equal values sharing their mean rank (Spearman 1904).
double rank_correlation(std::span<const double> a, std::span<const double> b);

// Heads by falling |zero_z|: layer * H + head.
std::vector<std::int64_t> strongest_heads(const WhyResult& why);

// "why " Mary" rather than " John""
std::string why_title(const WhyReport& report);
// One sentence per disagreement.
std::string in_words(const WhyReport& report, const Finding& finding, std::span<const std::string> labels);

// ---- For a person ----

struct WhyPageOptions {
  int width = 80;
  bool coloured = true;
  std::size_t most_tokens = 12, most_heads = 8;
};
Page why_page(const WhyReport& report, const WhyPageOptions& options);
// One file that needs nothing else: the text by cause and by attention, all numbers, all heads.
void write_why_html(Output& out, const WhyReport& report);

}  // namespace regard
