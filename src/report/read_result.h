#pragma once
// A reading with what a report needs beside it.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intervention/receipt.h"
#include "reading/reading.h"
#include "reading/sink.h"
#include "report/output.h"
#include "report/page.h"
#include "report/results.h"

namespace regard {

struct ReadResult {
  ModelSummary model;
  std::vector<TokenPiece> tokens;
  Reading reading;
  std::vector<Statistic> asked;  // what is written; the reading may hold more
  std::vector<Candidate> next;   // the likeliest after `next_row`, or in its place; none: no head
  std::int64_t next_row = 0;     // the last, or the first chosen one where rows read both ways
  std::vector<std::pair<std::string, Receipt>> edits = {};  // that were made while it was read
  std::map<std::int32_t, std::string> bytes_of = {};        // of every token that lens and direct name
  std::optional<AttentionSink> sink;                        // where column sums were read
  // Of an encoder-decoder: "encoder", "decoder" or "cross", whose keys are another text; else neither.
  std::string attention = {};
  std::vector<TokenPiece> keys = {};
  double seconds = 0;  // that reading took
  double tokens_per_second = 0;

  bool writes(Statistic statistic) const;
  bool reads_another_text() const { return !keys.empty(); }
  const std::vector<TokenPiece>& read_tokens() const { return keys.empty() ? tokens : keys; }  // what keys stand for
  TokenPiece piece_of(std::int32_t id) const;
  Candidate candidate(const Guess& guess) const { return {piece_of(guess.id), guess.logit, guess.logprob}; }
};

// The tokens that a reading names without their being in the text: of the lens, and those of direct.
std::map<std::int32_t, std::string> named_tokens(const Reading& reading, const Tokenizer& tokenizer);

void write_json(Output& out, const ReadResult& result);
// The attentions of an encoder-decoder in one document, each under its name; "source" and "tokens" are the two texts.
void write_json(Output& out, std::span<const ReadResult> attentions, const std::vector<TokenPiece>& source);
// One line per weight of the chosen rows. Error{usage} without them.
void write_csv(Output& out, const ReadResult& result);
void write_npz(Output& out, const ReadResult& result);

// For a person: what comes next, then per chosen row the text shaded, all heads at a glance, the strongest reads.
// Error{usage} without weights.
struct ReadPageOptions {
  int width = 80;
  bool coloured = true;
  std::size_t most_rows = 3;  // of the chosen ones, the first
  bool statistics = false;    // also the heads in which each statistic that was asked for is highest
};
Page read_page(const ReadResult& result, const ReadPageOptions& options);

}  // namespace regard
