// What a person sees in a terminal of what the answer of an encoder-decoder depends on.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/phrases.h"
#include "report/shaded_text.h"
#include "report/two_texts_why.h"
#include "report/views.h"
#include "text/display.h"

namespace regard {
namespace {

// One text with what hiding its tokens does in one attention.
struct Part {
  Attention attention;
  const char* title;
  const char* hidden;          // from whom
  const char* read = nullptr;  // by whom, where `weights` says
  const std::vector<TokenPiece>& tokens;
  const std::vector<double>& effects;
  const std::vector<double>* weights = nullptr;
  const std::vector<double>* from_last = nullptr;
  std::int64_t row = -1;  // of these tokens, the one that is measured
};

class TwoTextsPageWriter {
 public:
  TwoTextsPageWriter(const TwoTextWhyReport& report, const TwoTextWhyPageOptions& options)
      : report_(report), why_(report.why), options_(options) {}

  Page page() {
    page_.title = "regard why " + display(report_.model.name);
    add_answer();
    add_part({.attention = Attention::cross,
              .title = "the source, read by the target",
              .hidden = "each source token hidden from the decoder",
              .read = "cross attention of the measured row, mean over all heads",
              .tokens = report_.source,
              .effects = why_.source.hide_from_all,
              .weights = &why_.source.attention,
              .from_last = &why_.source.hide_from_last});
    add_part({.attention = Attention::encoder,
              .title = "the source, read by itself",
              .hidden = "each source token hidden from the others while they are encoded",
              .tokens = report_.source,
              .effects = why_.source.hide_in_encoder});
    add_part({.attention = Attention::decoder,
              .title = "the target, read by itself",
              .hidden = "each token hidden from all that come after it",
              .read = "own attention of the measured row, mean over all heads",
              .tokens = report_.tokens,
              .effects = why_.target.hide_from_all,
              .weights = &why_.target.attention,
              .from_last = &why_.target.hide_from_last,
              .row = why_.row});
    page_.add_line();
    page_.add_line(
        grouped(why_.what_ifs) + " what-ifs" + (report_.seconds ? fmt::format(" in {:.1f} s", *report_.seconds) : ""),
        kFaint);
    fit(page_, options_.width);
    return std::move(page_);
  }

 private:
  double worth(double effect) const { return support(report_.by.metric.kind, effect); }
  Style ink(double effect) const { return {.ink = worth(effect) < 0 ? kCool : kWarm}; }
  static double largest(std::span<const double> effects) {
    double most = 0;
    for (const double effect : effects)
      if (std::isfinite(effect)) most = std::max(most, std::fabs(effect));
    return most;
  }
  // Places by falling |effect|; those that have none are left out.
  static std::vector<std::size_t> ranked(std::span<const double> effects) {
    std::vector<std::size_t> order(effects.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t i) { return !std::isfinite(effects[i]); });
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return std::fabs(effects[a]) > std::fabs(effects[b]); });
    return order;
  }
  static std::vector<std::string> bytes_of(const std::vector<TokenPiece>& tokens) {
    std::vector<std::string> bytes;
    for (const TokenPiece& token : tokens) bytes.push_back(token.bytes);
    return bytes;
  }

  void add_answer() {
    const MeasuredBy& by = report_.by;
    page_.add_line(by.token.empty() ? "what the next token depends on"
                                    : "why " + in_quotes(by.token) +
                                          (by.against.empty() ? "" : " rather than " + in_quotes(by.against)),
                   kTitle);
    const std::string after = fmt::format(
        ", after {} (position {})", in_quotes(report_.tokens[static_cast<std::size_t>(why_.row)].bytes), why_.row);
    page_.add_line(is_divergence(by.metric.kind)
                       ? in_words(by) + after
                       : fmt::format("{} = {}{}", in_words(by), plain_number(why_.base), after));
    add_candidates(page_, first_candidates(report_.next), options_.width);
  }

  void add_part(const Part& part) {
    page_.add_line();
    page_.add_line(std::string("== ") + part.title, kTitle);
    page_.add_line(std::string("  ") + part.hidden, kFaint);
    const double most = largest(part.effects);
    if (most == 0) {
      page_.add_line("  Hiding any token changes nothing at all: every effect is exactly 0.");
    } else {
      add_shaded(part, part.effects, most, true);
      add_legend("hiding it");
    }
    if (part.weights != nullptr) {
      page_.add_line(std::string("  ") + part.read, kFaint);
      add_shaded(part, *part.weights, largest(*part.weights), false);
    }
    if (most > 0) add_table(part, most);
    add_heads(part);
  }

  void add_shaded(const Part& part, const std::vector<double>& values, double most, bool causes) {
    const std::vector<std::string> bytes = bytes_of(part.tokens);
    std::vector<ShadedToken> shaded;
    for (const TokenRange& range : whole_characters(bytes)) {
      ShadedToken token;
      double strongest = 0;
      for (std::size_t i = range.begin; i < range.end; ++i) {
        token.bytes += bytes[i];
        token.marked |= static_cast<std::int64_t>(i) == part.row;
        token.faint |= part.row >= 0 && static_cast<std::int64_t>(i) > part.row;
        if (std::isfinite(values[i]) && std::fabs(values[i]) > std::fabs(strongest)) strongest = values[i];
      }
      token.value = most > 0 ? std::fabs(strongest) / most : 0;
      token.cool = causes && worth(strongest) < 0;
      token.note = causes ? signed_number(strongest) : percent(strongest);
      shaded.push_back(std::move(token));
    }
    for (Line& line : shaded_text(shaded, {.width = options_.width, .coloured = options_.coloured}))
      page_.lines.push_back(std::move(line));
  }

  void add_legend(const std::string& what) {
    Line& line = page_.add_line("  ");
    const auto entry = [&](bool cool, const std::string& words) {
      if (options_.coloured) {
        for (const double value : {0.3, 0.6, 1.0}) line.push_back(piece("  ", {.heat = value, .cool = cool}));
      } else {
        line.push_back(piece(cool ? "░▒▓" : "▂▄█"));
      }
      line.push_back(piece(fmt::format(" {} {}   ", what, words), kFaint));
    };
    if (is_divergence(report_.by.metric.kind)) return entry(false, "changes the distribution");
    entry(false, "hurts the answer");
    entry(true, "helps it");
  }

  void add_table(const Part& part, double most) {
    constexpr int kEffect = 10, kBar = 16;
    const std::vector<std::size_t> order = ranked(part.effects);
    const std::vector<std::string> labels = token_labels(bytes_of(part.tokens));
    const std::size_t n = std::min(options_.most_tokens, order.size());
    int widest = 5;
    for (std::size_t i = 0; i < n; ++i) widest = std::max(widest, columns(Line{piece(labels[order[i]])}));
    widest = std::min(widest, std::max(8, options_.width / 4));
    std::string head = padded("pos", 5, true) + " " + padded("token", widest) + padded("hide all", kEffect, true) +
                       std::string(kBar + 1, ' ');
    if (part.from_last != nullptr) head += padded("hide last", kEffect, true);
    if (part.weights != nullptr) head += padded("attention", kEffect + 1, true);
    page_.add_line(head, kFaint);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t s = order[i];
      Page cut;
      cut.add_line(labels[s]);
      fit(cut, widest);
      const double effect = part.effects[s];
      Line& line = page_.add_line(padded(std::to_string(s), 5, true) + " ", kFaint);
      line.push_back(piece(padded(cut.lines[0].empty() ? "" : cut.lines[0][0].text, widest)));
      line.push_back(piece(padded(signed_number(effect), kEffect, true) + " "));
      line.push_back(piece(padded(bar(std::fabs(effect) / most, kBar), kBar), ink(effect)));
      if (part.from_last != nullptr) line.push_back(piece(padded(signed_number((*part.from_last)[s]), kEffect, true)));
      if (part.weights != nullptr) line.push_back(piece(padded(percent((*part.weights)[s]), kEffect + 1, true)));
    }
    if (order.size() > n)
      page_.add_line(fmt::format("      {} more change it by {} or less", order.size() - n,
                                 plain_number(std::fabs(part.effects[order[n]]))),
                     kFaint);
  }

  void add_heads(const Part& part) {
    constexpr double kWeak = 0.1;  // of the strongest; below it a head gets no mark
    const Tensor<double, 2>& zero_z = why_.zero_z[static_cast<int>(part.attention)];
    if (zero_z.size() == 0) return;
    const std::span<const double> effects(zero_z.data(), static_cast<std::size_t>(zero_z.size()));
    const std::int64_t L = zero_z.shape()[0], H = zero_z.shape()[1];
    const double most = largest(effects);
    page_.add_line("  its heads, each one's output set to 0 in every row", kFaint);
    if (most == 0) {
      page_.add_line("  Setting any head to 0 changes nothing at all: every effect is exactly 0.");
      return;
    }
    for (std::int64_t h = 0; h < H; ++h) {
      Line& line = page_.add_line(padded(fmt::format("  head {}", h), 10), kFaint);
      for (std::int64_t l = 0; l < L; ++l) {
        const double effect = zero_z(l, h), strength = std::fabs(effect) / most;
        Style style = kFaint;
        std::string mark = "·";
        if (strength >= kWeak) {
          const bool cool = worth(effect) < 0;
          style = {.heat = strength, .cool = cool};
          mark = options_.coloured ? (effect < 0 ? "-" : "+") : (cool ? cool_glyph(strength) : bar_glyph(strength));
        }
        line.push_back(piece(padded(mark, 2), style, fmt::format("layer {} head {}: {}", l, h, signed_number(effect))));
      }
    }
    const std::vector<std::size_t> order = ranked(effects);
    for (std::size_t i = 0; i < std::min(options_.most_heads, order.size()); ++i) {
      const auto at = static_cast<std::int64_t>(order[i]);
      Line& line = page_.add_line(
          padded(fmt::format("  layer {} head {}: {}", at / H, at % H, signed_number(effects[order[i]])), 32));
      line.push_back(piece(bar(std::fabs(effects[order[i]]) / most, 20), ink(effects[order[i]])));
    }
  }

  const TwoTextWhyReport& report_;
  const TwoTextWhy& why_;
  const TwoTextWhyPageOptions& options_;
  Page page_;
};

}  // namespace

Page why_page(const TwoTextWhyReport& report, const TwoTextWhyPageOptions& options) {
  return TwoTextsPageWriter(report, options).page();
}

}  // namespace regard
