#include "report/why_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/phrases.h"
#include "report/shaded_text.h"

namespace regard {

std::string share_text(double share) { return std::isnan(share) ? "–" : percent(share); }

std::vector<WhyCharacter> why_characters(const WhyReport& report, const WhyFindings& findings) {
  const WhyResult& why = report.why;
  std::vector<std::string> bytes;
  for (const TokenPiece& token : report.tokens) bytes.push_back(token.bytes);
  std::vector<WhyCharacter> characters;
  double most_read = 0;
  for (const TokenRange& range : whole_characters(bytes)) {
    WhyCharacter character{.begin = range.begin, .end = range.end, .bytes = {}};
    for (std::size_t i = range.begin; i < range.end; ++i) {
      character.bytes += (report.tokens[i].gap ? " " : "") + bytes[i];
      character.row |= static_cast<std::int64_t>(i) == why.row;
      character.after |= static_cast<std::int64_t>(i) >= why.seen;
      character.sink |= findings.sink && static_cast<std::size_t>(*findings.sink) == i;
      character.attention += why.attention[i];
      const double cause = support(report.by.metric.kind, why.hide_from_all[i]) / findings.largest;
      if (std::isfinite(cause) && std::fabs(cause) > std::fabs(character.cause)) character.cause = cause;
    }
    if (character.sink) character.cause = character.attention = 0;
    most_read = std::max(most_read, character.attention);
    characters.push_back(std::move(character));
  }
  for (WhyCharacter& character : characters) character.attention = most_read > 0 ? character.attention / most_read : 0;
  return characters;
}

std::string why_note(const WhyReport& report, std::size_t position) {
  const WhyResult& why = report.why;
  std::string note = fmt::format("position {} {}", position, in_quotes(report.tokens[position].bytes));
  note += fmt::format(": hidden from all {}, from the last {}", signed_number(why.hide_from_all[position]),
                      signed_number(why.hide_from_last[position]));
  if (!why.screened.empty()) note += fmt::format(", screened {}", signed_number(why.screened[position]));
  note += fmt::format("; attention {}, rollout {}, norm-weighted {}", share_text(why.attention[position]),
                      share_text(why.rollout[position]), share_text(why.norm_weighted[position]));
  if (!why.both.empty())
    note += fmt::format("; from the contrast: keys {}, values {}, both {}", signed_number(why.keys_only[position]),
                        signed_number(why.values_only[position]), signed_number(why.both[position]));
  return note;
}

std::vector<double> head_causes(const WhyReport& report) {
  const auto& zero_z = report.why.zero_z;
  double largest = 0;
  for (std::int64_t i = 0; i < zero_z.size(); ++i)
    if (std::isfinite(zero_z.data()[i])) largest = std::max(largest, std::fabs(zero_z.data()[i]));
  std::vector<double> causes;
  for (std::int64_t i = 0; i < zero_z.size(); ++i) {
    const double cause = support(report.by.metric.kind, zero_z.data()[i]) / largest;
    causes.push_back(std::isfinite(cause) ? cause : 0);
  }
  return causes;
}

std::string head_note(const WhyReport& report, std::int64_t index) {
  const std::int64_t heads = report.why.zero_z.shape()[1];
  return fmt::format("layer {} head {}: {}", index / heads, index % heads,
                     signed_number(report.why.zero_z.data()[index]));
}

WhyLegend why_legend(const WhyReport& report) {
  if (is_divergence(report.by.metric.kind)) return {"changes the distribution", ""};
  if (of_all_rows(report.by.metric.kind)) return {"makes it less alike", "makes it more alike"};
  return {"hurts the answer", "helps it"};
}

std::string reader_words(const WhyReport& report, std::span<const std::string> labels) {
  return report.why.row < 0 ? "all rows" : labels[static_cast<std::size_t>(report.why.row)];
}

std::string hidden_words(const WhyReport& report) {
  return reads_both_ways(report.model) ? "each token hidden from all others"
                                       : "each token hidden from all that come after it";
}

std::string answer_words(const WhyReport& report, std::span<const std::string> labels) {
  const WhyResult& why = report.why;
  std::string place;
  if (why.row >= 0)
    place = fmt::format(", {} {} (position {})", reads_both_ways(report.model) ? "in place of" : "after",
                        reader_words(report, labels), why.row);
  if (is_divergence(report.by.metric.kind)) return in_words(report.by) + place;
  std::string text = fmt::format("{} = {}{}", in_words(report.by), plain_number(why.base), place);
  if (why.contrast) text += fmt::format("; in the contrast {}", plain_number(*why.contrast));
  return text;
}

std::string correlation_words(const WhyFindings& findings) {
  const auto number = [](double r) { return std::isnan(r) ? std::string("–") : fmt::format("{:.2f}", r); };
  return fmt::format(
      "How well each reading puts the tokens in the order of their causes (rank correlation, 1 is the same order): "
      "attention {}, rollout {}, norm-weighted {}.",
      number(findings.attention), number(findings.rollout), number(findings.norm_weighted));
}

std::string screen_words(const WhyReport& report, const WhyFindings& findings) {
  if (report.why.screened.empty()) return {};
  const std::size_t hidden =
      findings.ranked.size() +
      (findings.sink && std::isfinite(report.why.hide_from_all[static_cast<std::size_t>(*findings.sink)]));
  return fmt::format(
      "Screened: only the {} positions that attribution patching puts first were hidden, exactly; what it says of the "
      "others is a first order, and no proof that they do not matter.",
      hidden);
}

std::string sink_words(const WhyReport& report, std::int64_t sink, const std::string& label) {
  const auto at = static_cast<std::size_t>(sink);
  return fmt::format(
      "{} {} is the sink: heads put {} of their attention there whatever it says. It is left out of the shades and "
      "ranks; hiding it: {}.",
      sink, label, percent(report.why.attention[at]), signed_number(report.why.hide_from_all[at]));
}

}  // namespace regard
