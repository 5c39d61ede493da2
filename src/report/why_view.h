#pragma once
// What the terminal's and the browser's form of `why` have in common: the text's characters with their shades.

#include <cstddef>
#include <string>
#include <vector>

#include "report/why_result.h"

namespace regard {

// A token, or those that only together make up a character.
struct WhyCharacter {
  std::size_t begin = 0, end = 0;  // tokens
  std::string bytes;
  double cause = 0;      // [-1, 1] of the largest; above 0: works for the answer. Of several tokens the strongest.
  double attention = 0;  // [0, 1] of the largest
  bool sink = false;     // shaded by neither
  bool row = false;      // the position that reads
  bool after = false;    // the answer does not see it
};
std::vector<WhyCharacter> why_characters(const WhyReport& report, const WhyFindings& findings);

// Everything that is known of one position, on one line.
std::string why_note(const WhyReport& report, std::size_t position);
std::string share_text(double share);  // "12.3 %"

// [-1, 1] of the strongest: above 0: the head works for the answer. [L * H]
std::vector<double> head_causes(const WhyReport& report);
std::string head_note(const WhyReport& report, std::int64_t index);

// What is said beside the shades: "hiding it hurts the answer", "hiding it helps it".
struct WhyLegend {
  std::string warm, cool;  // cool: empty where there is no such thing
};
WhyLegend why_legend(const WhyReport& report);

// Who reads: the label of the metric's row, or all rows.
std::string reader_words(const WhyReport& report, std::span<const std::string> labels);
// From whom each token was hidden.
std::string hidden_words(const WhyReport& report);
// The metric, its value and its place.
std::string answer_words(const WhyReport& report, std::span<const std::string> labels);
// How far each reading goes with the causes.
std::string correlation_words(const WhyFindings& findings);
// How many positions were hidden, where a screen chose them; else empty.
std::string screen_words(const WhyReport& report, const WhyFindings& findings);
std::string sink_words(const WhyReport& report, std::int64_t sink, const std::string& label);

}  // namespace regard
