#pragma once
// How a metric, and what an edit did to it, is said to a person.

#include <string>

#include "intervention/metric.h"
#include "text/tokenizer.h"

namespace regard {

// A metric whose tokens are known, with what they stand for.
struct MeasuredBy {
  Metric metric;
  std::string text;            // as it is typed: "diff ' Mary' ' John'"
  std::string token, against;  // their bytes; empty where the metric has none
};
MeasuredBy measured_by(const Metric& metric, const Tokenizer& tokenizer);

// `logit of " Mary" minus logit of " John"`
std::string in_words(const MeasuredBy& by);
// What an effect says of the thing that was taken away: above 0, it worked for the answer. A lower logit says so, but a
// higher rank number or a larger divergence.
double support(MetricKind kind, double effect);

// "+1.234", "-0.021", "+3e-05", "0" for exactly 0 and "–" for NaN.
std::string signed_number(double value);
// The same without the plus.
std::string plain_number(double value);

}  // namespace regard
