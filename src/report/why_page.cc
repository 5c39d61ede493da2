// What a person sees in a terminal of what an answer depends on.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/phrases.h"
#include "report/shaded_text.h"
#include "report/views.h"
#include "report/why_result.h"
#include "report/why_view.h"
#include "text/display.h"

namespace regard {
namespace {

// Words on as many lines as they need.
void add_paragraph(Page& page, std::string_view text, int width, int indent, Style style = {}) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string line = margin;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin + 1), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (columns(line) + columns(word) > width && line.size() > margin.size()) {
      page.add_line(line, style);
      line = margin + std::string(word.substr(word[0] == ' '));
    } else {
      line += word;
    }
    begin = end;
  }
  page.add_line(line, style);
}

class WhyPageWriter {
 public:
  WhyPageWriter(const WhyReport& report, const WhyPageOptions& options)
      : report_(report), why_(report.why), options_(options), findings_(find_out(report)) {
    std::vector<std::string> bytes;
    for (const TokenPiece& token : report.tokens) bytes.push_back(token.bytes);
    labels_ = token_labels(bytes);
  }

  Page page() {
    page_.title = "regard why " + display(report_.model.name);
    add_answer();
    add_causes();
    add_attention();
    add_disagreements();
    add_table();
    if (why_.zero_z.size() > 0) add_heads();
    page_.add_line();
    page_.add_line(
        grouped(why_.what_ifs) + " what-ifs" + (report_.seconds ? fmt::format(" in {:.1f} s", *report_.seconds) : ""),
        kFaint);
    fit(page_, options_.width);
    return std::move(page_);
  }

 private:
  double effect(std::int64_t s) const { return why_.hide_from_all[static_cast<std::size_t>(s)]; }
  const std::string& label(std::int64_t s) const { return labels_[static_cast<std::size_t>(s)]; }
  Style ink(double effect) const { return {.ink = support(report_.by.metric.kind, effect) < 0 ? kCool : kWarm}; }

  void add_title(const std::string& title, const std::string& what = {}) {
    page_.add_line();
    Line& line = page_.add_line(title, kTitle);
    if (what.empty()) return;
    if (columns(title) + columns(what) + 2 <= options_.width) {
      line.push_back(piece("  " + what, kFaint));
    } else {
      add_paragraph(page_, what, options_.width, 2, kFaint);
    }
  }

  void add_answer() {
    page_.add_line(why_title(report_), kTitle);
    add_paragraph(page_, answer_words(report_, labels_), options_.width, 0);
    add_candidates(page_, first_candidates(report_.next), options_.width);
  }

  void add_shaded(bool by_cause) {
    std::vector<ShadedToken> tokens;
    for (const WhyCharacter& character : why_characters(report_, findings_)) {
      tokens.push_back({.bytes = character.bytes,
                        .value = by_cause ? std::fabs(character.cause) : character.attention,
                        .note = why_note(report_, character.begin),
                        .marked = character.row,
                        .faint = character.sink || character.after,
                        .cool = by_cause && character.cause < 0});
    }
    for (Line& line : shaded_text(tokens, {.width = options_.width, .coloured = options_.coloured}))
      page_.lines.push_back(std::move(line));
  }

  void add_legend(std::string_view what) {
    const WhyLegend legend = why_legend(report_);
    const auto entry = [&](bool cool, const std::string& words) {
      std::vector<Piece> pieces;
      if (options_.coloured) {
        for (const double value : {0.3, 0.6, 1.0}) pieces.push_back(piece("  ", {.heat = value, .cool = cool}));
      } else {
        pieces.push_back(piece(cool ? "░▒▓" : "▂▄█"));
      }
      pieces.push_back(piece(fmt::format(" {} {}", what, words), kFaint));
      const int used = columns(page_.lines.back());
      if (used > 2 && used + columns(Line(pieces)) > options_.width) page_.add_line("  ");
      page_.lines.back().insert(page_.lines.back().end(), pieces.begin(), pieces.end());
    };
    page_.add_line("  ");
    entry(false, legend.warm);
    if (legend.cool.empty()) return;
    page_.lines.back().push_back(piece("   "));
    entry(true, legend.cool);
  }

  void add_causes() {
    add_title("what it depends on", hidden_words(report_));
    if (findings_.ranked.empty()) {
      add_paragraph(page_, "The position is the first that reads anything: there is nothing to hide.", options_.width,
                    2);
      return;
    }
    add_shaded(true);
    if (findings_.largest == 0) {
      add_paragraph(page_, "Hiding any token changes nothing at all: every effect is exactly 0.", options_.width, 2);
      return;
    }
    add_legend("hiding it");
    if (const std::string words = screen_words(report_, findings_); !words.empty())
      add_paragraph(page_, words, options_.width, 2, kFaint);
  }

  void add_attention() {
    const auto& config = report_.model.config;
    add_title("what was read", fmt::format("attention of {}, mean over all heads{}", reader_words(report_, labels_),
                                           config ? fmt::format(" ({} x {})", config->layers, config->heads) : ""));
    add_shaded(false);
    if (findings_.sink)
      add_paragraph(page_, sink_words(report_, *findings_.sink, label(*findings_.sink)), options_.width, 2, kFaint);
  }

  void add_disagreements() {
    if (findings_.ranked.size() < 2 || findings_.largest == 0 || !why_.screened.empty()) return;
    add_title("where they disagree");
    for (const Finding& finding : findings_.disagreements)
      add_paragraph(page_, in_words(report_, finding, labels_), options_.width, 2);
    if (findings_.disagreements.empty())
      add_paragraph(page_, "No token is read a lot and changes nothing, and none is read little and decides.",
                    options_.width, 2);
    if (!std::isnan(findings_.attention)) add_paragraph(page_, correlation_words(findings_), options_.width, 2, kFaint);
  }

  struct Column {
    const char* head;
    const std::vector<double>* values;
    bool share;
    int columns;
    int importance;
  };

  // The columns that there is room for, in their order.
  std::vector<Column> chosen_columns(int room) const {
    const bool contrast = !why_.both.empty();
    std::vector<Column> all = {{"attention", &why_.attention, true, 11, 1},
                               {"rollout", &why_.rollout, true, 9, 6},
                               {"norm-w.", &why_.norm_weighted, true, 9, 7}};
    if (why_.row >= 0) all.insert(all.begin(), {"hide last", &why_.hide_from_last, false, 11, 2});
    if (contrast) {
      all.push_back({"keys", &why_.keys_only, false, 8, 4});
      all.push_back({"values", &why_.values_only, false, 8, 5});
      all.push_back({"both", &why_.both, false, 8, 3});
    }
    std::vector<Column> by_importance = all;
    std::sort(by_importance.begin(), by_importance.end(),
              [](const Column& a, const Column& b) { return a.importance < b.importance; });
    int least = 99;
    for (const Column& column : by_importance) {
      if (column.columns > room) break;
      room -= column.columns;
      least = column.importance;
    }
    std::erase_if(all, [&](const Column& column) { return least == 99 || column.importance > least; });
    return all;
  }

  void add_table() {
    if (findings_.ranked.empty() || findings_.largest == 0) return;
    constexpr int kEffect = 9, kLeastBar = 6, kMostBar = 20;
    const std::size_t n = std::min(options_.most_tokens, findings_.ranked.size());
    std::vector<std::int64_t> shown(findings_.ranked.begin(),
                                    findings_.ranked.begin() + static_cast<std::ptrdiff_t>(n));
    const int most = std::max(8, options_.width / 4);
    int widest = 5, digits = 3;
    for (const std::int64_t s : shown) {
      widest = std::max(widest, columns(std::string_view(cut(label(s), most))));
      digits = std::max(digits, static_cast<int>(std::to_string(s).size()));
    }
    const int fixed = digits + 1 + widest + kEffect + 1;
    const std::vector<Column> columns = chosen_columns(options_.width - fixed - kLeastBar);
    int room = options_.width - fixed;
    for (const Column& column : columns) room -= column.columns;
    room = std::clamp(room, 0, kMostBar);

    const bool contrast =
        std::any_of(columns.begin(), columns.end(), [&](const Column& column) { return column.values == &why_.both; });
    add_title("the tokens it depends on most", contrast ? "keys, values, both: taken from the contrast" : "");
    std::string head = padded("pos", digits, true) + " " + padded("token", widest) + padded("hide all", kEffect, true) +
                       " " + std::string(static_cast<std::size_t>(room), ' ');
    for (const Column& column : columns) head += padded(column.head, column.columns, true);
    page_.add_line(head, kFaint);
    for (const std::int64_t s : shown) {
      const auto at = static_cast<std::size_t>(s);
      Line& line = page_.add_line(padded(std::to_string(s), digits, true) + " ", kFaint);
      line.push_back(piece(padded(cut(label(s), most), widest), {}, why_note(report_, at)));
      line.push_back(piece(padded(signed_number(effect(s)), kEffect, true) + " "));
      line.push_back(piece(padded(bar(std::fabs(effect(s)) / findings_.largest, room), room), ink(effect(s))));
      for (const Column& column : columns) {
        const double value = (*column.values)[at];
        line.push_back(piece(padded(column.share ? share_text(value) : signed_number(value), column.columns, true)));
      }
    }
    if (findings_.ranked.size() > n)
      page_.add_line(fmt::format("{} more change it by {} or less", findings_.ranked.size() - n,
                                 plain_number(std::fabs(effect(findings_.ranked[n])))),
                     kFaint);
  }

  static std::string cut(const std::string& label, int most) {
    if (columns(std::string_view(label)) <= most) return label;
    Page page;
    page.add_line(label);
    fit(page, most);
    return page.lines[0][0].text;
  }

  void add_heads() {
    constexpr double kWeak = 0.1;  // of the strongest; below it a head gets no mark
    const std::int64_t L = why_.zero_z.shape()[0], H = why_.zero_z.shape()[1];
    const std::vector<double> causes = head_causes(report_);
    const std::vector<std::int64_t> order = strongest_heads(why_);
    add_title("which heads carry it", "each head's output set to 0, in every row");
    if (why_.zero_z.data()[order[0]] == 0) {
      add_paragraph(page_, "Setting any head to 0 changes nothing at all: every effect is exactly 0.", options_.width,
                    2);
      return;
    }
    const int label = std::max(8, static_cast<int>(std::to_string(H - 1).size()) + 6);
    const std::int64_t room = std::max(options_.width - label, 8);
    const int columns = 2 * L <= room ? 2 : 1;
    const std::int64_t per_block = room / columns;
    for (std::int64_t begin = 0; begin < L; begin += per_block) {
      const std::int64_t end = std::min(L, begin + per_block);
      std::string numbers = padded("layer", label);
      for (std::int64_t l = begin; l < end; l += 5)
        numbers = padded(numbers, label + static_cast<int>(l - begin) * columns) + std::to_string(l);
      page_.add_line(numbers, kFaint);
      for (std::int64_t h = 0; h < H; ++h) {
        Line& line = page_.add_line(padded(fmt::format("head {}", h), label), kFaint);
        for (std::int64_t l = begin; l < end; ++l) {
          const std::int64_t index = l * H + h;
          const double cause = causes[static_cast<std::size_t>(index)], strength = std::fabs(cause);
          Style style = kFaint;
          std::string mark = "·";
          if (strength >= kWeak) {
            style = {.heat = strength, .cool = cause < 0};
            mark = options_.coloured ? (why_.zero_z.data()[index] < 0 ? "-" : "+")
                                     : (cause < 0 ? cool_glyph(strength) : bar_glyph(strength));
          }
          line.push_back(piece(padded(mark, columns), style, head_note(report_, index)));
        }
      }
    }
    add_legend("removing it");
    add_strongest_heads(order);
  }

  void add_strongest_heads(const std::vector<std::int64_t>& order) {
    const std::size_t n = std::min(options_.most_heads, order.size());
    int widest = 0;
    for (std::size_t i = 0; i < n; ++i) widest = std::max(widest, columns(head_note(report_, order[i])));
    const double largest = std::fabs(why_.zero_z.data()[order[0]]);
    for (std::size_t i = 0; i < n; ++i) {
      const double effect = why_.zero_z.data()[order[i]];
      Line& line = page_.add_line("  " + padded(head_note(report_, order[i]), widest + 2));
      line.push_back(
          piece(bar(std::fabs(effect) / largest, std::clamp(options_.width - widest - 4, 4, 30)), ink(effect)));
    }
  }

  const WhyReport& report_;
  const WhyResult& why_;
  const WhyPageOptions& options_;
  const WhyFindings findings_;
  std::vector<std::string> labels_;
  Page page_;
};

}  // namespace

Page why_page(const WhyReport& report, const WhyPageOptions& options) { return WhyPageWriter(report, options).page(); }

}  // namespace regard
