#pragma once
// What is measured of a run: one number from the logits of one row, or from the residuals of all.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace regard {

enum class MetricKind {
  logit,    // of `token`
  logprob,  // logit of `token` - log-sum-exp of all
  diff,     // logit of `token` - logit of `against`
  prob,     // softmax at `token`
  rank,     // how many tokens have a higher logit than `token`: 0 is the first choice; NaN where that is not a number
  kl,       // sum p log(p / q), in nats: p the clean run's distribution, q the edited one's
  tvd,      // sum |p - q| / 2
  jsd,      // KL(p, m) / 2 + KL(q, m) / 2 with m = (p + q) / 2, in nats: at most log 2 (Lin 1991)
  cosine,   // of the text's embedding and that of `text`, or of its own clean run (intervention/embedding.h)
};
// Those that compare with the clean run's distribution and name no token.
bool is_divergence(MetricKind kind);

struct Metric {
  MetricKind kind = MetricKind::diff;
  std::int32_t token = -1, against = -1;  // -1: to be taken from the clean run, its first and second choice
  std::vector<std::int32_t> ids = {};     // cosine: the other text; empty: this one's clean run
  std::string text = {};                  // as it was typed
};

// Whether the metric is a number of all rows, and not of one.
bool of_all_rows(MetricKind kind);

// What is measured if nobody says: diff, or cosine where the model has no head.
Metric default_metric(const ModelConfig& config);
// Where a metric of one row is measured if nobody says: the last row of a model that reads left to right; the row of
// the mask token of one that reads both ways. Error{usage} when the text has none or several.
std::int64_t default_row(const Model& model, std::span<const std::int32_t> ids);
// The rows that hold the mask token; none where the tokenizer has no such token.
std::vector<std::int64_t> mask_rows(const Model& model, std::span<const std::int32_t> ids);

// "diff ' Mary' ' John'", "logprob 123", "kl", "cosine a text of its own". A text in quotes must be one token of the
// tokenizer's own splitting (but for cosine): Error{usage} shows how it splits.
Metric parse_metric(std::string_view text, const Tokenizer& tokenizer);
// One token, by id or by text, with or without quotes (a number without quotes is an id).
std::int32_t parse_token(std::string_view text, const Tokenizer& tokenizer);
std::string to_string(const Metric& metric, const Tokenizer& tokenizer);

// The metric of rows of one text, given the clean run.
class Measure {
 public:
  // clean: [T, C], the clean run's residuals after the last block; row: where logits are looked at. Fills in the
  // metric's tokens. Error{unsupported} for a metric of logits where the model has no head.
  Measure(const Model& model, Metric metric, View<const float, 2> clean, std::int64_t row);

  const Metric& metric() const { return metric_; }
  double base() const { return base_; }
  bool of_all_rows() const { return regard::of_all_rows(metric_.kind); }
  const std::vector<float>& clean_logits() const { return clean_; }  // [V] at the row; empty without a head
  // resid: [R, C] of edited runs, at the metric's row. Only the logits that the metric needs are made.
  std::vector<double> of(View<const float, 2> resid) const;
  // resid: [T, C] of an edited run; for a metric of all rows.
  double of_text(View<const float, 2> resid) const;

 private:
  double of_logits(std::span<const float> logits) const;

  const Model& model_;
  Metric metric_;
  std::vector<float> clean_;       // [V] logits
  std::vector<double> embedding_;  // [C] that cosine compares with
  double base_ = 0;
};

// How two next-token distributions differ. Sums in double by token; equal logits give exactly 0.
struct Divergence {
  double kl = 0, tvd = 0, jsd = 0;
};
Divergence divergence(std::span<const float> p_logits, std::span<const float> q_logits);

// Jensen-Shannon divergence of two distributions (or rows of weights), in nats: sum p log(p / m) / 2 + sum q log(q / m)
// / 2 with m = (p + q) / 2. In double by index; exactly 0 for equal ones.
double jensen_shannon(std::span<const float> p, std::span<const float> q);

}  // namespace regard
