// What a person sees of a reading.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/head_grid.h"
#include "report/phrases.h"
#include "report/read_parts.h"
#include "report/read_result.h"
#include "report/row_summary.h"
#include "report/shaded_text.h"
#include "report/views.h"
#include "tensor/error.h"
#include "text/display.h"

namespace regard {
namespace {

constexpr std::size_t kReadsShown = 12;
constexpr std::size_t kMostRead = 5;
constexpr std::size_t kFirstHeads = 4;

std::string count(std::size_t n, const std::string& one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

// One row of the reading, and all that is said about it.
struct RowView {
  const ReadResult& result;
  const ReadPageOptions& options;
  std::int64_t position;
  std::optional<std::int64_t> sink;
  const std::vector<std::string>& bytes;   // [S] of each token
  const std::vector<std::string>& labels;  // [S] what it is called
  RowSummary summary;
  std::string row_label;

  const std::string& text(std::int64_t at) const { return labels[static_cast<std::size_t>(at)]; }
  std::int64_t layer(const HeadRead& read) const {
    return result.reading.request.layers[static_cast<std::size_t>(read.layer)];
  }
  std::int64_t head(const HeadRead& read) const {
    return result.reading.request.heads[static_cast<std::size_t>(read.head)];
  }
};

// The text, shaded by the shares; a character that several tokens make up is shown whole, with their shares added.
void add_shaded_text(Page& page, const RowView& view) {
  const std::vector<TokenRange> ranges = whole_characters(view.bytes);
  std::vector<double> shares;
  for (const TokenRange& range : ranges) {
    shares.push_back(0);
    for (std::size_t i = range.begin; i < range.end; ++i) shares.back() += view.summary.share[i];
  }
  const double largest = *std::max_element(shares.begin(), shares.end());
  std::vector<ShadedToken> tokens;
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    ShadedToken token;
    bool is_sink = false;
    for (std::size_t i = ranges[r].begin; i < ranges[r].end; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      token.bytes += (view.result.read_tokens()[i].gap ? " " : "") + view.bytes[i];
      const bool across = view.result.reads_another_text();
      token.marked |= !across && at == view.position;
      token.faint |= at == view.sink || (at > view.position && !across && !reads_both_ways(view.result.model));
      is_sink |= at == view.sink;
    }
    token.value = largest > 0 ? shares[r] / largest : 0;
    token.note = fmt::format("position {}: {}", ranges[r].begin,
                             is_sink ? "the sink, " + percent(view.summary.sink_share) : percent(shares[r]));
    tokens.push_back(std::move(token));
  }
  for (Line& line : shaded_text(tokens, {.width = view.options.width, .coloured = view.options.coloured}))
    page.lines.push_back(std::move(line));
}

void add_sink(Page& page, const RowView& view) {
  if (!view.sink) return;
  Line& line = page.add_line("sink  ", kFaint);
  line.push_back(piece(fmt::format("{} {}", *view.sink, view.text(*view.sink))));
  line.push_back(piece(fmt::format(" took {}; what follows is without it", percent(view.summary.sink_share)), kFaint));
}

void add_most_read(Page& page, const RowView& view) {
  const std::vector<double>& share = view.summary.share;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < share.size(); ++i)
    if (share[i] > 0) order.push_back(i);
  const std::size_t n = std::min(kMostRead, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
                    [&](std::size_t a, std::size_t b) { return share[a] != share[b] ? share[a] > share[b] : a < b; });
  page.add_line("most  ", kFaint);
  for (std::size_t i = 0; i < n; ++i) {
    const Piece next = piece(
        fmt::format("{} {} {}   ", order[i], view.text(static_cast<std::int64_t>(order[i])), percent(share[order[i]])));
    if (columns(page.lines.back()) + next.columns > view.options.width) page.add_line("      ");
    page.lines.back().push_back(next);
  }
}

void add_strongest(Page& page, const RowView& view) {
  page.add_line("strongest reads", kTitle);
  const std::size_t n = std::min(kReadsShown, view.summary.strongest.size());
  std::vector<std::string> texts;
  const bool across = view.result.reads_another_text();
  std::set<std::int64_t> named;
  if (!across) named.insert(view.position);
  for (std::size_t i = 0; i < n; ++i) named.insert(view.summary.strongest[i].key);
  const bool placed = need_places(view.labels, std::vector<std::int64_t>(named.begin(), named.end()));
  const auto name = [&](std::int64_t at) { return placed ? fmt::format("{} {}", at, view.text(at)) : view.text(at); };
  int widest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const HeadRead& read = view.summary.strongest[i];
    texts.push_back(fmt::format("  layer {} head {}: {} <- {} {:.2f}", view.layer(read), view.head(read),
                                across ? view.row_label : name(view.position), name(read.key), read.weight));
    widest = std::max(widest, piece(texts.back()).columns);
  }
  const int room = std::clamp(view.options.width - widest - 2, 0, 30);
  for (std::size_t i = 0; i < n; ++i) {
    const HeadRead& read = view.summary.strongest[i];
    Line& line = page.add_line(padded(texts[i], widest));
    if (room >= 8) line.push_back(piece("  " + bar(read.weight, room), {.ink = kWarm}));
  }
}

void add_row(Page& page, const RowView& view) {
  const ReadingRequest& request = view.result.reading.request;
  if (!page.lines.empty()) page.add_line();
  Line& title = page.add_line(
      fmt::format("what {} read{}", view.row_label, view.result.reads_another_text() ? " of the source" : ""), kTitle);
  title.push_back(piece(fmt::format("  position {}, mean over {} x {}", view.position,
                                    count(request.layers.size(), "layer"), count(request.heads.size(), "head")),
                        kFaint));
  add_shaded_text(page, view);
  page.add_line();
  add_sink(page, view);
  add_most_read(page, view);
  if (view.summary.heads.size() > 1) {
    page.add_line();
    page.add_line("every head", kTitle);
    add_head_grid(page, {.layers = request.layers,
                         .heads = request.heads,
                         .labels = view.labels,
                         .reads = view.summary.heads,
                         .width = view.options.width});
  }
  page.add_line();
  add_strongest(page, view);
}

// The heads in which a statistic is highest, on average over the rows.
void add_statistic(Page& page, const ReadResult& result, Statistic statistic, View<const float, 2> mean) {
  struct Head {
    std::int64_t layer, head;
    float value;
  };
  std::vector<Head> heads;
  const ReadingRequest& request = result.reading.request;
  for (std::size_t l = 0; l < request.layers.size(); ++l)
    for (std::size_t h = 0; h < request.heads.size(); ++h)
      if (!std::isnan(mean(l, h))) heads.push_back({request.layers[l], request.heads[h], mean(l, h)});
  std::stable_sort(heads.begin(), heads.end(), [](const Head& a, const Head& b) { return a.value > b.value; });
  Line& line = page.add_line("  " + padded(std::string(info(statistic).name), 12));
  if (heads.empty()) line.push_back(piece("nothing to average", kFaint));
  for (std::size_t i = 0; i < std::min(kFirstHeads, heads.size()); ++i)
    line.push_back(piece(fmt::format("{}.{} {:.3g}   ", heads[i].layer, heads[i].head, heads[i].value)));
}

void add_statistics(Page& page, const ReadResult& result) {
  std::string elsewhere;
  bool first = true;
  for (const Statistic statistic : result.asked) {
    if (statistic == Statistic::weights || statistic == Statistic::top || statistic == Statistic::lens ||
        statistic == Statistic::direct)
      continue;
    const auto mean = result.reading.mean.find(statistic);
    if (mean == result.reading.mean.end() && statistic != Statistic::copying) {
      elsewhere += (elsewhere.empty() ? "" : ", ") + std::string(info(statistic).name);
      continue;
    }
    if (first) {
      page.add_line();
      page.add_line("highest heads", kTitle).push_back(piece("  layer.head and the mean over all rows", kFaint));
    }
    first = false;
    add_statistic(page, result, statistic,
                  statistic == Statistic::copying ? result.reading.copying.view() : mean->second.view());
  }
  if (!elsewhere.empty()) page.add_line("in --json or -o FILE only: " + elsewhere, kFaint);
}

void add_edits(Page& page, const ReadResult& result) {
  if (result.edits.empty()) return;
  page.add_line("read while this was changed", kTitle);
  for (const auto& [edit, receipt] : result.edits)
    page.add_line("  " + display(edit))
        .push_back(piece(fmt::format("   {} cell{} named, {} changed", grouped(receipt.matched),
                                     receipt.matched == 1 ? "" : "s", grouped(receipt.changed)),
                         kFaint));
  page.add_line();
}

void add_next(Page& page, const ReadResult& result, const std::vector<std::string>& labels, int width) {
  if (result.next.empty()) return;
  if (reads_both_ways(result.model))
    page.add_line("in place of " + labels[static_cast<std::size_t>(result.next_row)], kTitle)
        .push_back(piece(fmt::format("  position {}", result.next_row), kFaint));
  else
    page.add_line("next token", kTitle);
  add_candidates(page, result.next, width);
}

}  // namespace

Page read_page(const ReadResult& result, const ReadPageOptions& options) {
  const Reading& reading = result.reading;
  const std::vector<std::int64_t>& rows = reading.request.rows;
  if (reading.weights.size() == 0)
    throw Error(ErrorCode::usage, "no weights were read, so there is nothing to see", "choose fewer --rows");
  const auto bytes_of = [](const std::vector<TokenPiece>& tokens) {
    std::vector<std::string> bytes;
    for (const TokenPiece& token : tokens) bytes.push_back(token.bytes);
    return bytes;
  };
  const std::vector<std::string> bytes = bytes_of(result.read_tokens()), labels = token_labels(bytes);
  const std::vector<std::string> row_labels = token_labels(bytes_of(result.tokens));
  Page page{.title = "regard read " + result.model.name, .lines = {}};
  add_edits(page, result);
  add_next(page, result, row_labels, options.width);
  const View<const float, 4> weights = reading.weights.view();
  for (std::size_t r = 0; r < std::min(options.most_rows, rows.size()); ++r) {
    std::optional<std::int64_t> sink;
    if (result.sink && !result.reads_another_text() &&
        (reads_both_ways(result.model) ? result.sink->position != rows[r] : result.sink->position < rows[r]))
      sink = result.sink->position;
    const View<const float, 3> row(weights.data + static_cast<std::int64_t>(r) * weights.stride[2],
                                   {weights.shape[0], weights.shape[1], weights.shape[3]},
                                   {weights.stride[0], weights.stride[1], weights.stride[3]});
    add_row(page, {result, options, rows[r], sink, bytes, labels, summarise_row(row, sink),
                   row_labels[static_cast<std::size_t>(rows[r])]});
    if (result.writes(Statistic::lens)) add_lens(page, result, r, options.width);
    if (result.writes(Statistic::direct)) add_direct(page, result, r, options.width);
  }
  if (rows.size() > options.most_rows) {
    page.add_line();
    page.add_line(fmt::format("{} of {} rows are shown; --json and -o FILE hold all", options.most_rows, rows.size()),
                  kFaint);
  }
  if (options.statistics) add_statistics(page, result);
  fit(page, options.width);
  return page;
}

}  // namespace regard
