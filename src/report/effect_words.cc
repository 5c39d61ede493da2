#include "report/effect_words.h"

#include <fmt/format.h>

#include <cmath>

#include "report/phrases.h"

namespace regard {

MeasuredBy measured_by(const Metric& metric, const Tokenizer& tokenizer) {
  MeasuredBy by{.metric = metric, .text = to_string(metric, tokenizer), .token = {}, .against = {}};
  if (!is_divergence(metric.kind) && !of_all_rows(metric.kind)) by.token = tokenizer.bytes(metric.token);
  if (metric.kind == MetricKind::diff) by.against = tokenizer.bytes(metric.against);
  return by;
}

std::string in_words(const MeasuredBy& by) {
  const std::string token = in_quotes(by.token);
  switch (by.metric.kind) {
    case MetricKind::logit:
      return "logit of " + token;
    case MetricKind::logprob:
      return "log-probability of " + token;
    case MetricKind::diff:
      return "logit of " + token + " minus logit of " + in_quotes(by.against);
    case MetricKind::prob:
      return "probability of " + token;
    case MetricKind::rank:
      return "rank of " + token + " (0: first choice)";
    case MetricKind::kl:
      return "KL divergence from the clean run, in nats";
    case MetricKind::tvd:
      return "total variation distance from the clean run";
    case MetricKind::jsd:
      return "Jensen-Shannon divergence from the clean run, in nats";
    case MetricKind::cosine:
      return "cosine of the text's embedding with that of " +
             (by.metric.ids.empty() ? "the clean run" : in_quotes(by.metric.text, 60));
  }
  return by.text;
}

double support(MetricKind kind, double effect) {
  const bool higher_is_worse = is_divergence(kind) || kind == MetricKind::rank;
  return higher_is_worse ? effect : -effect;
}

std::string plain_number(double value) {
  if (std::isnan(value)) return "–";
  if (value == 0) return "0";
  if (std::fabs(value) < 0.0005) return fmt::format("{:.0e}", value);
  return std::fabs(value) < 1000 ? fmt::format("{:.3f}", value) : fmt::format("{:.0f}", value);
}

std::string signed_number(double value) { return (value > 0 ? "+" : "") + plain_number(value); }

}  // namespace regard
