// What a person sees of the lens and of the direct effects.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/phrases.h"
#include "report/read_parts.h"
#include "report/shaded_text.h"

namespace regard {
namespace {

constexpr std::size_t kGuesses = 3;
constexpr std::size_t kPartsShown = 10;

struct DirectPart {
  std::string name;
  double effect;
};

}  // namespace

void add_lens(Page& page, const ReadResult& result, std::size_t index, int width) {
  const auto& lens = result.reading.lens;
  const std::string final = in_quotes(result.piece_of(lens.back()[index].final.id).bytes);
  page.add_line();
  page.add_line("after each layer", kTitle)
      .push_back(piece(fmt::format("  what would {}, and how likely {} is",
                                   reads_both_ways(result.model) ? "stand there" : "come next", final),
                       kFaint));
  int widest = 0;
  const auto text = [&](const Guess& guess) { return in_quotes(result.piece_of(guess.id).bytes, 16); };
  for (const std::vector<LensRow>& layer : lens) widest = std::max(widest, piece(text(layer[index].top[0])).columns);
  for (std::size_t l = 0; l < lens.size(); ++l) {
    const LensRow& row = lens[l][index];
    Line& line = page.add_line(padded(l == 0 ? "embedding" : fmt::format("layer {}", l - 1), 11) + "  ", kFaint);
    line.push_back(piece(padded(percent(std::exp(row.final.logprob)), 8, true) + "  ",
                         {.heat = std::exp(static_cast<double>(row.final.logprob))}));
    line.push_back(
        piece("  " + padded(text(row.top[0]), widest) + padded(percent(std::exp(row.top[0].logprob)), 8, true)));
    for (std::size_t i = 1; i < std::min(kGuesses, row.top.size()); ++i) {
      const Piece next =
          piece(fmt::format("   {} {}", text(row.top[i]), percent(std::exp(row.top[i].logprob))), kFaint);
      if (columns(line) + next.columns <= width) line.push_back(next);
    }
  }
}

void add_direct(Page& page, const ReadResult& result, std::size_t index, int width) {
  const DirectEffects& direct = result.reading.direct;
  const auto row = static_cast<std::int64_t>(index);
  std::vector<DirectPart> parts = {{"embedding", direct.embedding(row)}};
  for (std::int64_t l = 0; l < direct.heads.shape()[0]; ++l) {
    for (std::int64_t h = 0; h < direct.heads.shape()[1]; ++h)
      parts.push_back({fmt::format("layer {} head {}", l, h), direct.heads(l, h, row)});
    parts.push_back({fmt::format("layer {} feed-forward", l), direct.mlp(l, row)});
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const DirectPart& a, const DirectPart& b) { return std::fabs(a.effect) > std::fabs(b.effect); });
  std::string what = in_quotes(result.piece_of(result.reading.direct_token[index]).bytes);
  if (const auto against = result.reading.request.against)
    what += " less that of " + in_quotes(result.piece_of(*against).bytes);
  page.add_line();
  page.add_line("written by", kTitle)
      .push_back(piece(fmt::format("  parts of the logit of {}, {:.2f} in all", what, direct.total(row)), kFaint));
  const double largest = std::max(std::fabs(parts.front().effect), 1e-300);
  const std::size_t n = std::min(kPartsShown, parts.size());
  int widest = 0;
  for (std::size_t i = 0; i < n; ++i) widest = std::max(widest, piece(parts[i].name).columns);
  for (std::size_t i = 0; i < n; ++i) {
    Line& line = page.add_line("  " + padded(parts[i].name, widest));
    line.push_back(piece(padded(fmt::format("{:+.3f}", parts[i].effect), 10, true) + "  "));
    const int room = std::clamp(width - columns(line), 0, 40);
    if (room >= 8 && std::isfinite(parts[i].effect))
      line.push_back(
          piece(bar(std::fabs(parts[i].effect) / largest, room), {.ink = parts[i].effect < 0 ? kCool : kWarm}));
  }
}

}  // namespace regard
