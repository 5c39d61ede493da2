#include "report/shaded_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "text/display.h"
#include "text/utf8.h"

namespace regard {
namespace {

// A line of the layout and what it stands for.
struct LaidLine {
  Line line;
  std::vector<double> values;  // of each piece
  double strongest = 0;
  std::int64_t tokens = 0;  // that begin here
};

class Layouter {
 public:
  explicit Layouter(int width) : width_(width) { lines_.emplace_back(); }

  void add(const ShadedToken& token) {
    // A line feed is shown, and obeyed.
    std::string_view rest = token.bytes;
    bool first = true;
    while (first || !rest.empty()) {
      const std::size_t end = rest.find('\n');
      const std::string shown = display(rest.substr(0, end)) + (end == rest.npos ? "" : "↵");
      place(shown, token, first);
      first = false;
      if (end == rest.npos) break;
      rest.remove_prefix(end + 1);
      lines_.emplace_back();
    }
  }

  std::vector<LaidLine> finish() {
    if (lines_.size() > 1 && lines_.back().line.empty()) lines_.pop_back();
    return std::move(lines_);
  }

 private:
  // Puts a piece where it fits; one that is wider than a whole line is cut where it must be.
  void place(std::string_view text, const ShadedToken& token, bool first) {
    if (first && columns(text) <= width_ && used() + columns(text) > width_) lines_.emplace_back();
    do {
      if (used() >= width_) lines_.emplace_back();
      std::string_view part = text;
      if (used() + columns(part) > width_) part = fitting(text, width_ - used());
      if (part.empty() && used() > 0) {
        lines_.emplace_back();
        continue;
      }
      if (part.empty()) part = text;  // wider than a line of its own
      append(part, token, first);
      first = false;
      text.remove_prefix(part.size());
    } while (!text.empty());
  }

  static std::string_view fitting(std::string_view text, int room) {
    std::size_t end = 0;
    while (end < text.size()) {
      const std::size_t next = end + character_at(text, end).length;
      if (columns(text.substr(0, next)) > room) break;
      end = next;
    }
    return text.substr(0, end);
  }

  int used() const { return columns(lines_.back().line); }

  void append(std::string_view part, const ShadedToken& token, bool first) {
    const Style style{.heat = token.value, .cool = token.cool, .bold = token.marked, .faint = token.faint};
    LaidLine& laid = lines_.back();
    laid.line.push_back(piece(std::string(part), style, token.note));
    laid.values.push_back(token.value);
    laid.strongest = std::max(laid.strongest, token.value);
    laid.tokens += first;
  }

  int width_;
  std::vector<LaidLine> lines_;
};

// Which lines stay when there are too many: the ends, then the most strongly shaded.
std::vector<bool> chosen_lines(const std::vector<LaidLine>& lines, int most) {
  std::vector<bool> kept(lines.size(), static_cast<int>(lines.size()) <= most);
  if (!kept.empty() && kept[0]) return kept;
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lines[a].strongest > lines[b].strongest; });
  int left = most;
  const auto keep = [&](std::size_t i) {
    if (i < lines.size() && !kept[i] && left > 0) {
      kept[i] = true;
      --left;
    }
  };
  keep(0);
  for (std::size_t i = 1; i <= 3; ++i) keep(lines.size() - i);
  for (const std::size_t i : order) keep(i);
  return kept;
}

// The bars under a line; empty when there is nothing to show.
Line bars_under(const LaidLine& laid) {
  Line line;
  if (laid.strongest <= kFaintestShade) return line;
  for (std::size_t i = 0; i < laid.line.size(); ++i) {
    const std::string glyph = laid.line[i].style.cool ? cool_glyph(laid.values[i]) : bar_glyph(laid.values[i]);
    std::string text;
    for (int c = 0; c < laid.line[i].columns; ++c) text += glyph;
    line.push_back(piece(std::move(text)));
  }
  return line;
}

}  // namespace

std::vector<TokenRange> whole_characters(std::span<const std::string> bytes) {
  constexpr std::size_t kLongestCharacter = 4;
  std::vector<TokenRange> ranges;
  for (std::size_t i = 0; i < bytes.size();) {
    std::size_t end = i + 1;
    std::string joined = bytes[i];
    if (first_invalid_utf8(joined)) {
      for (std::size_t next = end; next < bytes.size() && next - i < kLongestCharacter; ++next) {
        joined += bytes[next];
        if (first_invalid_utf8(joined)) continue;
        end = next + 1;
        break;
      }
    }
    ranges.push_back({i, end});
    i = end;
  }
  return ranges;
}

std::vector<Line> shaded_text(std::span<const ShadedToken> tokens, const ShadedTextLayout& layout) {
  Layouter layouter(layout.width);
  for (const ShadedToken& token : tokens) layouter.add(token);
  const std::vector<LaidLine> laid = layouter.finish();
  const std::vector<bool> kept = chosen_lines(laid, layout.most_lines);

  std::vector<Line> lines;
  for (std::size_t i = 0; i < laid.size();) {
    if (kept[i]) {
      lines.push_back(laid[i].line);
      if (!layout.coloured) {
        if (Line bars = bars_under(laid[i]); !bars.empty()) lines.push_back(std::move(bars));
      }
      ++i;
      continue;
    }
    std::int64_t left_out = 0, tokens_left_out = 0;
    for (; i < laid.size() && !kept[i]; ++i) {
      ++left_out;
      tokens_left_out += laid[i].tokens;
    }
    lines.push_back(
        {piece(fmt::format("   … {} line{} ({} tokens)", left_out, left_out == 1 ? "" : "s", tokens_left_out),
               {.faint = true})});
  }
  return lines;
}

std::string bar_glyph(double value) {
  constexpr std::array<const char*, 8> kGlyphs = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (!(value > kFaintestShade)) return " ";
  return kGlyphs[static_cast<std::size_t>(std::clamp(static_cast<int>(value * 8), 0, 7))];
}

std::string cool_glyph(double value) {
  constexpr std::array<const char*, 4> kGlyphs = {"░", "▒", "▓", "█"};
  if (!(value > kFaintestShade)) return " ";
  return kGlyphs[static_cast<std::size_t>(std::clamp(static_cast<int>(value * 4), 0, 3))];
}

std::string bar(double value, int width) {
  constexpr std::array<const char*, 8> kPart = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(value > 0)) return {};
  const int eighths = std::max(1, static_cast<int>(std::lround(std::min(value, 1.0) * width * 8)));
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  return text + kPart[static_cast<std::size_t>(eighths % 8)];
}

}  // namespace regard
