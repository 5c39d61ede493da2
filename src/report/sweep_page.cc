// What a person sees of a sweep: how the effects lie along each axis, and the strongest what-ifs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/phrases.h"
#include "report/shaded_text.h"
#include "report/sweep_result.h"

namespace regard {
namespace {

constexpr std::size_t kWhatIfsShown = 15;

std::vector<std::int64_t> place(std::int64_t i, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) at[axis] = i % shape[axis];
  return at;
}

std::vector<std::string> labels_of(const std::vector<TokenPiece>& tokens) {
  std::vector<std::string> bytes;
  for (const TokenPiece& token : tokens) bytes.push_back(token.bytes);
  return token_labels(bytes);
}

}  // namespace

Page sweep_page(const SweepReport& report, double seconds, int width) {
  Page page;
  page.title = "regard sweep " + report.model.name;
  for (const std::string& edit : report.edits) page.add_line(edit, kTitle);
  page.add_line(in_words(report.by));
  page.add_line(fmt::format("without edits {}", plain_number(report.base)));
  page.add_line();

  std::vector<std::int64_t> order;
  std::int64_t none = 0;
  for (std::int64_t i = 0; i < std::ssize(report.effect); ++i) {
    if (std::isnan(report.effect[i])) continue;
    order.push_back(i);
    none += report.effect[i] == 0;
  }
  const auto strength = [&](std::int64_t i) { return std::fabs(report.effect[i]); };
  const std::size_t n = std::min(kWhatIfsShown, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
      [&](std::int64_t a, std::int64_t b) { return strength(a) != strength(b) ? strength(a) > strength(b) : a < b; });
  const std::vector<std::string> labels = labels_of(report.tokens), source_labels = labels_of(report.source);
  page.add_line("strongest effects", kTitle);
  std::vector<std::string> names;
  int widest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::vector<std::int64_t> at = place(order[i], report.shape);
    std::string text = " ";
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      text += fmt::format(" {} {}", name(report.each[axis]), at[axis]);
      if (report.each[axis] == Selector::row || report.each[axis] == Selector::key)
        text += " " + (axis < report.of_source.size() && report.of_source[axis]
                           ? source_labels
                           : labels)[static_cast<std::size_t>(at[axis])];
    }
    names.push_back(text);
    widest = std::max(widest, piece(text).columns);
  }
  const double largest = n > 0 ? strength(order[0]) : 0;
  const int room = std::clamp(width - widest - 14, 0, 30);
  for (std::size_t i = 0; i < n; ++i) {
    const double effect = report.effect[order[i]];
    Line& line = page.add_line(padded(names[i], widest) + fmt::format("  {:>9}", signed_number(effect)));
    if (room >= 8 && largest > 0)
      line.push_back(piece("  " + bar(std::fabs(effect) / largest, room), {.ink = effect < 0 ? kWarm : kCool}));
  }
  const std::int64_t overflowed = report.what_ifs - std::ssize(order);
  page.add_line();
  if (overflowed > 0)
    page.add_line(fmt::format("{} what-ifs overflowed: what they gave is not a number", grouped(overflowed)));
  const std::string idle = none > 0 ? fmt::format("; {} of them change nothing", grouped(none)) : "";
  page.add_line(fmt::format("{} what-ifs in {:.1f} s{}", grouped(report.what_ifs), seconds, idle), kFaint);
  for (std::size_t e = 0; e < report.edits.size(); ++e)
    page.add_line(fmt::format("{}: {} cells named, {} changed", report.edits[e], grouped(report.receipts[e].matched),
                              grouped(report.receipts[e].changed)),
                  kFaint);
  fit(page, width);
  return page;
}

}  // namespace regard
