#pragma once
// What is measured of a run: one number from the logits of one row.

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
};

struct Metric {
  MetricKind kind = MetricKind::diff;
  std::int32_t token = -1, against = -1;  // -1: to be taken from the clean run, its first and second choice
};

// "diff ' Mary' ' John'", "logprob 123", "kl". A text in quotes must be one token of the tokenizer's own splitting:
// Error{usage} shows how it splits.
Metric parse_metric(std::string_view text, const Tokenizer& tokenizer);
// One token, by id or by text, with or without quotes (a number without quotes is an id).
std::int32_t parse_token(std::string_view text, const Tokenizer& tokenizer);
std::string to_string(const Metric& metric, const Tokenizer& tokenizer);

// The metric of rows of one text, given the clean run.
class Measure {
 public:
  // clean: [C], the clean run's residual at the metric's row after the last block. Fills in the metric's tokens.
  Measure(const Model& model, Metric metric, std::span<const float> clean);

  const Metric& metric() const { return metric_; }
  double base() const { return base_; }
  const std::vector<float>& clean_logits() const { return clean_; }  // [V]
  // resid: [R, C] of edited runs, at the metric's row. Only the logits that the metric needs are made.
  std::vector<double> of(View<const float, 2> resid) const;

 private:
  double of_logits(std::span<const float> logits) const;

  const Model& model_;
  Metric metric_;
  std::vector<float> clean_;  // [V] logits
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
