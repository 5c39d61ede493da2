// Where causes and attention disagree.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/phrases.h"
#include "report/why_result.h"

namespace regard {
namespace {

// What a reader of an attention map would point at: the top quarter, where it stands out from an even share. Below a
// twentieth of the largest cause a token is not among those the answer depends on, whatever the metric's unit.
constexpr double kTopPart = 0.25, kALot = 1.5, kChangesNothing = 0.05;
// Where nobody who reads the map would look: the lower half, with clearly less than an even share. A quarter of the
// largest cause is a part of the answer that cannot be left out.
constexpr double kLowerPart = 0.5, kLittle = 1 / kALot, kDecides = 0.25;
// With fewer positions a quarter is none.
constexpr std::size_t kFewest = 4;

double at(const std::vector<double>& values, std::int64_t position) {
  return values[static_cast<std::size_t>(position)];
}

std::vector<double> picked(const std::vector<double>& values, const std::vector<std::int64_t>& positions) {
  std::vector<double> some;
  for (const std::int64_t position : positions) some.push_back(at(values, position));
  return some;
}

// Ranks from 1 by rising value; equal values share the mean of theirs.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) rank[order[i]] = static_cast<double>(begin + 1 + end) / 2;
  }
  return rank;
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 3) return std::nan("");
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = static_cast<double>(a.size() + 1) / 2;
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : std::nan("");
}

WhyFindings find_out(const WhyReport& report) {
  const WhyResult& why = report.why;
  const std::vector<double>& cause = why.hide_from_all;
  WhyFindings found;
  const auto compared = [&](std::int64_t s) { return s < why.seen && s != why.row; };
  if (report.sink && compared(report.sink->position)) found.sink = report.sink->position;
  for (std::int64_t s = 0; s < why.seen; ++s)
    if (compared(s) && s != found.sink && std::isfinite(at(cause, s))) found.ranked.push_back(s);
  std::stable_sort(found.ranked.begin(), found.ranked.end(),
                   [&](std::int64_t a, std::int64_t b) { return std::fabs(at(cause, a)) > std::fabs(at(cause, b)); });
  if (!found.ranked.empty()) found.largest = std::fabs(at(cause, found.ranked.front()));
  if (!why.screened.empty()) {  // the causes of the others are not known
    found.attention = found.rollout = found.norm_weighted = std::nan("");
    return found;
  }

  std::vector<double> strength;
  for (const std::int64_t s : found.ranked) strength.push_back(std::fabs(at(cause, s)));
  found.attention = rank_correlation(picked(why.attention, found.ranked), strength);
  found.rollout = rank_correlation(picked(why.rollout, found.ranked), strength);
  found.norm_weighted = rank_correlation(picked(why.norm_weighted, found.ranked), strength);
  if (found.ranked.size() < kFewest || !(found.largest > 0)) return found;

  std::vector<std::int64_t> by_attention = found.ranked;
  std::stable_sort(by_attention.begin(), by_attention.end(),
                   [&](std::int64_t a, std::int64_t b) { return at(why.attention, a) > at(why.attention, b); });
  const auto n = static_cast<double>(by_attention.size());
  double even = 0;
  for (const std::int64_t s : by_attention) even += at(why.attention, s) / n;
  std::vector<Finding> not_read;
  for (std::size_t i = 0; i < by_attention.size(); ++i) {
    const double place = static_cast<double>(i + 1) / n;
    Finding finding{.position = by_attention[i],
                    .kind = Disagreement::read_not_used,
                    .attention_rank = static_cast<std::int64_t>(i) + 1,
                    .share_of_largest = std::fabs(at(cause, by_attention[i])) / found.largest};
    const double read = at(why.attention, by_attention[i]);
    if (place <= kTopPart && read >= kALot * even && finding.share_of_largest < kChangesNothing)
      found.disagreements.push_back(finding);
    finding.kind = Disagreement::used_not_read;
    if (place > kLowerPart && read <= kLittle * even && finding.share_of_largest >= kDecides)
      not_read.push_back(finding);
  }
  std::stable_sort(not_read.begin(), not_read.end(),
                   [](const Finding& a, const Finding& b) { return a.share_of_largest > b.share_of_largest; });
  found.disagreements.insert(found.disagreements.end(), not_read.begin(), not_read.end());
  return found;
}

std::vector<std::int64_t> strongest_heads(const WhyResult& why) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(why.zero_z.size()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return std::fabs(why.zero_z.data()[a]) > std::fabs(why.zero_z.data()[b]);
  });
  return order;
}

std::string why_title(const WhyReport& report) {
  const MeasuredBy& by = report.by;
  if (of_all_rows(by.metric.kind))
    return by.metric.ids.empty() ? "what the text's embedding depends on"
                                 : "what the likeness to " + in_quotes(by.metric.text, 60) + " depends on";
  if (by.token.empty())
    return reads_both_ways(report.model) ? "what the answer depends on" : "what the next token depends on";
  return "why " + in_quotes(by.token) +
         (by.metric.kind == MetricKind::diff ? " rather than " + in_quotes(by.against) : "");
}

std::string in_words(const WhyReport& report, const Finding& finding, std::span<const std::string> labels) {
  const std::string token = fmt::format("{} {}", finding.position, labels[static_cast<std::size_t>(finding.position)]);
  const std::string effect = signed_number(at(report.why.hide_from_all, finding.position));
  const std::string read = percent(at(report.why.attention, finding.position));
  if (finding.kind == Disagreement::read_not_used)
    return fmt::format("{} is read a lot ({}, place {}), but hiding it changes next to nothing: {}", token, read,
                       finding.attention_rank, effect);
  return fmt::format("{} is read little ({}, place {}), but hiding it decides: {}", token, read, finding.attention_rank,
                     effect);
}

}  // namespace regard
