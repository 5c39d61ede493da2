// What a person sees of a patch.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/patch_result.h"
#include "report/phrases.h"
#include "report/shaded_text.h"
#include "text/display.h"

namespace regard {
namespace {

constexpr Colour kBefore{64, 132, 214}, kAfter{228, 112, 20};  // clear on dark and on light

std::string cells(std::int64_t n) { return fmt::format("{} cell{}", grouped(n), n == 1 ? "" : "s"); }

// The pieces one after another, on as many lines as they need.
void add_wrapped(Page& page, std::vector<Piece> pieces, int width, int indent) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && columns(page.lines.back()) + pieces[i].columns > width)
      page.add_line(std::string(static_cast<std::size_t>(indent), ' '));
    page.lines.back().push_back(std::move(pieces[i]));
  }
}

void add_effect(Page& page, const PatchReport& report, int width) {
  const PatchResult& patch = report.patch;
  page.add_line(in_words(report.by), kTitle);
  page.add_line("  ");
  const double effect = patch.edited - patch.base;
  const std::size_t last = report.tokens.empty() ? 0 : report.tokens.size() - 1;
  std::vector<Piece> pieces = {piece(plain_number(patch.base)), piece(" -> " + plain_number(patch.edited)),
                               piece("   effect "), piece(signed_number(effect), kTitle)};
  if (report.row >= 0 && (reads_both_ways(report.model) || static_cast<std::size_t>(report.row) != last))
    pieces.push_back(
        piece(fmt::format("   {} position {}", reads_both_ways(report.model) ? "at" : "after", report.row), kFaint));
  add_wrapped(page, std::move(pieces), width, 2);
  if (patch.contrast) {
    page.add_line("  ");
    pieces = {piece("contrast " + plain_number(*patch.contrast), kFaint)};
    pieces.push_back(patch.recovery
                         ? piece(fmt::format("   {} of the way from it to the clean run", percent(*patch.recovery)))
                         : piece("   equal to the clean run: nothing to recover"));
    add_wrapped(page, std::move(pieces), width, 2);
  }
  if (!std::isfinite(effect))
    page.add_line("  The edited run overflowed: what it gave is not a number. Change less, or elsewhere.");
  if (effect == 0) page.add_line("  The effect is exactly 0: the edits do not reach this number.");
}

void add_receipts(Page& page, std::string_view title, std::span<const std::string> names,
                  std::span<const Receipt> receipts, int width) {
  page.add_line(std::string(title), kTitle);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    const Receipt& receipt = receipts[i];
    page.add_line("  ");
    std::vector<Piece> pieces = {piece(display(names[i])), piece("   " + cells(receipt.matched) + " named, ", kFaint)};
    if (receipt.changed == 0) {
      pieces.push_back(piece("none changed", kTitle));
      pieces.push_back(piece(": they held these values already", kFaint));
    } else {
      pieces.push_back(piece(receipt.changed == receipt.matched ? receipt.matched == 1 ? "changed" : "all changed"
                                                                : fmt::format("{} changed", grouped(receipt.changed)),
                             kFaint));
    }
    add_wrapped(page, std::move(pieces), width, 4);
  }
}

void add_shifts(Page& page, const PatchReport& report, const PatchPageOptions& options) {
  constexpr int kPercent = 8, kGap = 2, kWidestBar = 24;
  const std::vector<Shift> found = shifts(report, options.most_tokens);
  int widest = 10;  // "next token"
  const int most = std::max(12, options.width / 4);
  for (const Shift& shift : found)
    widest = std::max(widest, columns(std::string_view(in_quotes(shift.token.bytes, most))));
  const int room = std::clamp((options.width - widest - 2 * (kPercent + 2 * kGap)) / 2, 0, kWidestBar);
  Line& head = page.add_line(padded(reads_both_ways(report.model) ? "in place" : "next token", widest), kTitle);
  const int half = kGap + kPercent + kGap + room;
  head.push_back(piece(padded(std::string(kGap, ' ') + padded("before", kPercent, true), half), kFaint));
  head.push_back(piece(std::string(kGap, ' ') + padded("after", kPercent, true), kFaint));
  for (const Shift& shift : found) {
    Line& line = page.add_line(padded(in_quotes(shift.token.bytes, most), widest));
    const std::string note =
        fmt::format("id {}: log-probability {:.4f} -> {:.4f}, logit {:.4f} -> {:.4f}", shift.token.id, shift.before,
                    shift.after, shift.logit_before, shift.logit_after);
    line.back().note = note;
    for (const bool after : {false, true}) {
      const double p = std::exp(after ? shift.after : shift.before);
      line.push_back(piece(std::string(kGap, ' ') + padded(percent(p), kPercent, true) + std::string(kGap, ' ')));
      std::string drawn = bar(p, room);
      if (!after) drawn = padded(std::move(drawn), room);
      line.push_back(piece(std::move(drawn), {.ink = after ? kAfter : kBefore}, note));
    }
  }
}

void add_distributions(Page& page, const PatchReport& report, const PatchPageOptions& options) {
  page.add_line();
  add_shifts(page, report, options);
  page.add_line();
  const Divergence& d = report.patch.divergence;
  page.add_line("the two distributions", kTitle);
  page.add_line("  ");
  if (d.kl == 0 && d.tvd == 0 && d.jsd == 0) {
    page.lines.back().push_back(piece("are the same, bit for bit: KL, TVD and JSD are 0"));
  } else {
    add_wrapped(page,
                {piece("KL " + plain_number(d.kl) + " nats"), piece("   TVD " + plain_number(d.tvd)),
                 piece("   JSD " + plain_number(d.jsd) + " nats (at most 0.693)")},
                options.width, 2);
  }
  if (const auto& pattern = report.patch.pattern) {  // Jain & Wallace 2019: is attention explanation?
    page.add_line("  ");
    add_wrapped(page,
                {piece(fmt::format("weights moved by JSD {} over {} row{}, at most {};", plain_number(pattern->mean),
                                   grouped(pattern->rows), pattern->rows == 1 ? "" : "s", plain_number(pattern->max))),
                 piece(" the output by TVD " + plain_number(d.tvd))},
                options.width, 2);
  }
}

}  // namespace

Page patch_page(const PatchReport& report, const PatchPageOptions& options) {
  Page page{.title = "regard patch " + display(report.model.name), .lines = {}};
  add_effect(page, report, options.width);
  page.add_line();
  add_receipts(page, "edits", report.edits, report.patch.receipts, options.width);
  if (!report.receivers.empty())
    add_receipts(page, "and only what they change here", report.receivers, report.patch.received, options.width);
  if (!report.patch.before.empty()) add_distributions(page, report, options);
  fit(page, options.width);
  return page;
}

}  // namespace regard
