#pragma once
// How often each way of explaining an answer names the word that it was planted to depend on.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/output.h"
#include "report/page.h"
#include "report/results.h"

namespace regard {

// Of the scores that a method gives to the positions of one sentence, or sums of these over sentences.
struct TruthScore {
  double cause = 0;       // 1: the cause has the largest
  double either = 0;      // 1: the cause, or where there is one the carrier, has the largest
  double reciprocal = 0;  // 1 / the rank of the cause

  TruthScore& operator+=(const TruthScore& other);
};

struct TruthMethod {
  std::string name;   // "hide_from_all"
  std::string title;  // "exact: hide from all"
  std::string how;    // in a sentence
};

// Sentences of one kind in one language.
struct TruthGroup {
  std::string kind, language;      // "lookup", "english"
  std::int64_t asked = 0;          // sentences
  std::int64_t facts = 0;          // that these say: which words together
  std::int64_t answered = 0;       // rightly: only these are measured
  std::int64_t with_carrier = 0;   // of the answered ones
  std::vector<TruthScore> scores;  // [method], summed over the answered ones

  TruthGroup& operator+=(const TruthGroup& other);  // kind and language stay
};

struct TruthTable {
  ModelSummary model;
  std::string recipe;                // how the model was made, in its own words; or empty
  std::int64_t count = 0;            // sentences of each kind in each language
  std::vector<TruthMethod> methods;  // the first is what others are compared with
  std::vector<TruthGroup> groups;

  std::vector<std::string> kinds() const;                        // each once, in their order
  TruthGroup sum(const std::optional<std::string>& kind) const;  // nothing: of all
};

inline constexpr std::int64_t kTruthCount = 100;  // if nobody says how many

void write_json(Output& out, const TruthTable& table);
// A page for docs/: how the table is made, and what it says.
void write_markdown(Output& out, const TruthTable& table);
Page truth_page(const TruthTable& table);

}  // namespace regard
