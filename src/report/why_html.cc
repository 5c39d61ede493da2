// What an answer depends on, as one HTML file that needs nothing else.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/markup.h"
#include "report/phrases.h"
#include "report/shaded_text.h"
#include "report/why_result.h"
#include "report/why_view.h"
#include "text/display.h"

namespace regard {
namespace {

constexpr const char* kStyle =
    R"(:root{color-scheme:light dark;--paper:#fff;--ink:#1f2328;--faint:#6e7781;--line:#d8dee4;--bar:#9aa4ae;--none:#eef1f4}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--faint:#8b949e;--line:#30363d;--bar:#6b7683;--none:#1a212a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif}
main{max-width:66rem;margin:0 auto;padding:2rem 1.25rem 3rem}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .3rem;white-space:pre-wrap}
h2{font-size:1.05rem;margin:2.2rem 0 .5rem}
h2 small,.faint,figcaption,footer{color:var(--faint);font-weight:normal;font-size:.9rem}
h2 small{margin-left:.5em}
p{margin:.4rem 0}
.text{font-size:1.3rem;line-height:1.75;white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0}
.text span{padding:.12em 0;border-radius:3px}
.text .row{outline:2px solid var(--ink);outline-offset:-1px}
.text .apart{color:var(--faint);text-decoration:underline dotted}
.differs{font-weight:bold}
.on{box-shadow:0 0 0 2px var(--ink)}
.key{display:inline-block;width:1.5em;height:1em;vertical-align:-.12em}
.scroll{overflow:auto;max-height:36rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:.18rem .45rem .3rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{vertical-align:bottom;white-space:normal;line-height:1.2;position:sticky;top:0;background:var(--paper);font-weight:normal;color:var(--faint);font-size:.9rem}
td.token,th.token{text-align:left;white-space:pre;max-width:16rem;overflow:hidden;text-overflow:ellipsis}
td.share{background:linear-gradient(var(--bar),var(--bar)) right .45rem bottom 2px/calc(var(--w)*.85) 3px no-repeat}
tr.on td{box-shadow:none;background-color:var(--none)}
td.bar{min-width:7rem;padding:0}
.bar i{display:block;position:relative;height:1rem;background:linear-gradient(var(--line),var(--line)) var(--middle,50%) 0/1px 100% no-repeat}
.bar b{position:absolute;top:.1rem;bottom:.1rem}
dl{display:grid;grid-template-columns:max-content max-content minmax(4rem,22rem);gap:.15rem .8rem;margin:.8rem 0;align-items:center}
dt{white-space:pre}dd{margin:0;text-align:right;font-variant-numeric:tabular-nums}dl b{display:block;height:.8rem;background:var(--faint);min-width:1px}
svg text{font:11px system-ui,sans-serif;fill:var(--faint)}
svg rect{stroke:var(--line);stroke-width:.6}rect.none{fill:transparent}
svg g:hover rect{stroke:var(--ink);stroke-width:1.5}
ol{columns:2 18rem;padding-left:2rem}
footer{margin-top:2.5rem;border-top:1px solid var(--line);padding-top:.6rem}
)";

// A token that is pointed at is framed wherever it stands.
constexpr const char* kScript =
    R"(const mark=(e,on)=>{const t=e.target.closest?.('[data-t]');if(t)for(const o of document.querySelectorAll('[data-t="'+t.dataset.t+'"]'))o.classList.toggle('on',on)};
document.addEventListener('pointerover',e=>mark(e,true));document.addEventListener('pointerout',e=>mark(e,false));
)";

// As shaded text shows it: a line feed is shown, and obeyed.
std::string shown(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    text += markup_text(display(bytes.substr(0, end)));
    if (end == bytes.npos) break;
    text += "↵\n";
    bytes.remove_prefix(end + 1);
  }
  return text;
}

class HtmlWriter {
 public:
  HtmlWriter(Output& out, const WhyReport& report)
      : out_(out), report_(report), why_(report.why), findings_(find_out(report)) {
    std::vector<std::string> bytes;
    for (const TokenPiece& token : report.tokens) bytes.push_back(token.bytes);
    labels_ = token_labels(bytes);
    characters_ = why_characters(report, findings_);
  }

  void write() {
    out_.write("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" +
               markup_text("regard " + why_title(report_)) +
               "</title>\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<style>\n" + kStyle +
               heat_rules(false) + heat_rules(true) + (why_legend(report_).cool.empty() ? "table{--middle:0%}\n" : "") +
               "</style>\n</head>\n<body>\n<main>\n");
    write_answer();
    write_causes();
    write_attention();
    write_disagreements();
    write_table();
    if (why_.zero_z.size() > 0) write_heads();
    out_.write("<footer>" +
               markup_text(fmt::format("{} what-ifs · regard {} · {}", grouped(why_.what_ifs), version(),
                                       display(report_.model.name))) +
               "</footer>\n</main>\n<script>\n" + kScript + "</script>\n</body>\n</html>\n");
  }

 private:
  const std::string& label(std::int64_t s) const { return labels_[static_cast<std::size_t>(s)]; }
  // Of a bar.
  std::string colour(double effect) const { return heat_class(1, support(report_.by.metric.kind, effect) < 0); }
  void paragraph(const std::string& text, const char* tag = "p") {
    out_.write(fmt::format("<{0}>{1}</{0}>\n", tag, markup_text(text)));
  }
  void heading(const std::string& title, const std::string& what) {
    out_.write("<h2>" + markup_text(title) + " <small>" + markup_text(what) + "</small></h2>\n");
  }

  void write_answer() {
    std::string title = why_title(report_);
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
    paragraph(title, "h1");
    paragraph(answer_words(report_, labels_));
    out_.write("<dl>");
    for (const Candidate& candidate : report_.next) {
      const double p = std::exp(candidate.logprob);
      out_.write(fmt::format("<dt>{}</dt><dd>{}</dd><dd><b style=\"width:{:.2f}%\"></b></dd>\n",
                             markup_text(in_quotes(candidate.token.bytes)), percent(p), p * 100));
    }
    out_.write("</dl>\n");
    if (report_.contrast_tokens.empty()) return;
    out_.write("<p><span class=\"faint\">contrast: </span><span style=\"white-space:pre-wrap\">");
    std::vector<std::string> bytes;
    for (const TokenPiece& token : report_.contrast_tokens) bytes.push_back(token.bytes);
    for (const TokenRange& range : whole_characters(bytes)) {
      std::string whole;
      bool differs = false;
      for (std::size_t i = range.begin; i < range.end; ++i) {
        whole += (report_.contrast_tokens[i].gap ? " " : "") + bytes[i];
        differs |= i >= report_.tokens.size() || report_.tokens[i].id != report_.contrast_tokens[i].id;
      }
      out_.write(differs ? "<span class=\"differs\">" + shown(whole) + "</span>" : shown(whole));
    }
    out_.write("</span></p>\n");
  }

  void write_text(bool by_cause) {
    out_.write("<p class=\"text\" dir=\"auto\">");
    for (const WhyCharacter& character : characters_) {
      std::string classes =
          by_cause ? heat_class(std::fabs(character.cause), character.cause < 0) : heat_class(character.attention);
      if (character.row) classes += " row";
      if (character.sink || character.after) classes += " apart";
      out_.write(fmt::format("<span class=\"{}\" data-t=\"{}\" title=\"{}\">{}</span>", classes, character.begin,
                             markup_text(why_note(report_, character.begin)), shown(character.bytes)));
    }
    out_.write("</p>\n");
  }

  void write_legend(const std::string& what) {
    const WhyLegend legend = why_legend(report_);
    const auto entry = [&](bool cool, const std::string& words) {
      for (const double value : {0.25, 0.5, 0.75, 1.0})
        out_.write("<span class=\"key " + heat_class(value, cool) + "\"></span>");
      out_.write(" " + markup_text(what + " " + words) + " ");
    };
    out_.write("<p class=\"faint\">");
    entry(false, legend.warm);
    out_.write("&emsp;");
    if (!legend.cool.empty()) entry(true, legend.cool);
    out_.write("</p>\n");
  }

  void write_causes() {
    heading("What it depends on", hidden_words(report_));
    if (findings_.ranked.empty())
      return paragraph("The position is the first that reads anything: there is nothing to hide.");
    write_text(true);
    if (findings_.largest == 0) return paragraph("Hiding any token changes nothing at all: every effect is exactly 0.");
    write_legend("hiding it");
    if (const std::string words = screen_words(report_, findings_); !words.empty()) paragraph(words);
  }

  void write_attention() {
    heading("What was read", fmt::format("attention of {}{}, mean over all layers and heads",
                                         reader_words(report_, labels_), why_.row >= 0 ? " (framed)" : ""));
    write_text(false);
    if (findings_.sink)
      out_.write("<p class=\"faint\">" + markup_text(sink_words(report_, *findings_.sink, label(*findings_.sink))) +
                 "</p>\n");
  }

  void write_disagreements() {
    if (findings_.ranked.size() < 2 || findings_.largest == 0 || !why_.screened.empty()) return;
    heading("Where they disagree", "");
    if (findings_.disagreements.empty())
      paragraph("No token is read a lot and changes nothing, and none is read little and decides.");
    for (const Finding& finding : findings_.disagreements) {
      out_.write(fmt::format("<p data-t=\"{}\">", finding.position) + markup_text(in_words(report_, finding, labels_)) +
                 "</p>\n");
    }
    if (!std::isnan(findings_.attention))
      out_.write("<p class=\"faint\">" + markup_text(correlation_words(findings_)) + "</p>\n");
  }

  void effect_cell(double effect) { out_.write("<td>" + signed_number(effect) + "</td>"); }
  // A line as long as the share is, of the largest beside the sink's.
  void share_cell(double share, double largest) {
    out_.write(fmt::format("<td class=\"share\" style=\"--w:{:.1f}%\">{}</td>",
                           largest > 0 ? std::min(share / largest, 1.0) * 100 : 0, share_text(share)));
  }
  // From the middle where there are two ways to go: to the left what hiding lowers the metric by, to the right what it
  // raises it by.
  void bar_cell(double effect) {
    const int middle = why_legend(report_).cool.empty() ? 0 : 50;
    const double length = std::fabs(effect) / findings_.largest * (100 - middle);
    out_.write(fmt::format("<td class=\"bar\"><i><b class=\"{}\" style=\"width:{:.2f}%;{}:{}%\"></b></i></td>",
                           colour(effect), std::min(length, 100.0), effect < 0 ? "right" : "left", middle));
  }

  double largest_share(const std::vector<double>& shares) const {
    double largest = 0;
    for (const std::int64_t s : findings_.ranked) largest = std::max(largest, shares[static_cast<std::size_t>(s)]);
    return largest;
  }

  void write_table() {
    if (findings_.ranked.empty() || findings_.largest == 0) return;
    const bool contrast = !why_.both.empty();
    heading("Token by token", fmt::format("change of the metric, by how much it matters{}",
                                          contrast ? "; keys, values, both: taken from the contrast" : ""));
    out_.write(
        "<div class=\"scroll\"><table>\n<thead><tr><th>position<th class=\"token\">token<th>hidden from all<th>"
        "<th>from the last<th>attention<th>rollout<th>norm-weighted");
    if (contrast) out_.write("<th>keys<th>values<th>both");
    out_.write("</tr></thead>\n<tbody>\n");
    std::vector<std::int64_t> rows = findings_.ranked;
    if (findings_.sink) rows.push_back(*findings_.sink);
    if (contrast && why_.row >= 0) rows.push_back(why_.row);  // which cannot be hidden from itself, but patched
    for (const std::int64_t s : rows) {
      const auto at = static_cast<std::size_t>(s);
      const bool ranked = s != findings_.sink && s != why_.row;
      out_.write(fmt::format("<tr data-t=\"{}\" title=\"{}\"><td>{}</td><td class=\"token\">{}{}</td>", s,
                             markup_text(why_note(report_, at)), s, markup_text(label(s)),
                             s == findings_.sink ? " <span class=\"faint\">sink</span>" : ""));
      effect_cell(why_.hide_from_all[at]);
      if (ranked) {
        bar_cell(why_.hide_from_all[at]);
      } else {
        out_.write("<td class=\"bar\"></td>");
      }
      effect_cell(why_.hide_from_last[at]);
      for (const auto* shares : {&why_.attention, &why_.rollout, &why_.norm_weighted})
        share_cell((*shares)[at], largest_share(*shares));
      if (contrast)
        for (const auto* effects : {&why_.keys_only, &why_.values_only, &why_.both}) effect_cell((*effects)[at]);
      out_.write("</tr>\n");
    }
    out_.write("</tbody></table></div>\n");
  }

  void write_heads() {
    constexpr int kCell = 18, kLeft = 58, kTop = 20;
    const std::int64_t L = why_.zero_z.shape()[0], H = why_.zero_z.shape()[1];
    const std::vector<double> causes = head_causes(report_);
    const std::vector<std::int64_t> order = strongest_heads(why_);
    heading("Which heads carry it", "each head's output set to 0, in every row");
    if (why_.zero_z.data()[order[0]] == 0)
      return paragraph("Setting any head to 0 changes nothing at all: every effect is exactly 0.");
    const std::int64_t width = kLeft + L * kCell + 2, height = kTop + H * kCell + 2;
    out_.write(
        fmt::format("<div class=\"scroll\"><svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
                    "aria-label=\"effect of each head\">\n",
                    width, height));
    out_.write(fmt::format("<text x=\"{}\" y=\"13\" text-anchor=\"end\">layer</text>\n", kLeft - 8));
    const std::int64_t numbered = L > 12 ? 5 : 1;
    for (std::int64_t l = 0; l < L; l += numbered)
      out_.write(
          fmt::format("<text x=\"{}\" y=\"13\" text-anchor=\"middle\">{}</text>\n", kLeft + l * kCell + kCell / 2, l));
    for (std::int64_t h = 0; h < H; ++h) {
      out_.write(fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}{}</text>\n", kLeft - 8,
                             kTop + h * kCell + 13, h == 0 ? "head " : "", h));
      for (std::int64_t l = 0; l < L; ++l) write_head(l * H + h, causes, kLeft + l * kCell, kTop + h * kCell, kCell);
    }
    out_.write("</svg></div>\n");
    write_legend("removing it");
    out_.write("<ol>\n");
    for (std::size_t i = 0; i < std::min<std::size_t>(10, order.size()); ++i)
      paragraph(head_note(report_, order[i]), "li");
    out_.write("</ol>\n");
  }

  void write_head(std::int64_t index, const std::vector<double>& causes, std::int64_t x, std::int64_t y, int cell) {
    constexpr double kMarked = 0.1;  // of the strongest: a sign beside the colour
    const double cause = causes[static_cast<std::size_t>(index)], strength = std::fabs(cause);
    std::string colour = heat_class(strength, cause < 0);
    if (colour.empty()) colour = "none";
    out_.write(
        fmt::format("<g><title>{}</title><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
                    "rx=\"2\"/>",
                    markup_text(head_note(report_, index)), colour, x + 1, y + 1, cell - 2, cell - 2));
    if (strength >= kMarked)
      out_.write(fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", colour,
                             x + cell / 2, y + cell / 2 + 4, why_.zero_z.data()[index] < 0 ? "−" : "+"));
    out_.write("</g>\n");
  }

  Output& out_;
  const WhyReport& report_;
  const WhyResult& why_;
  const WhyFindings findings_;
  std::vector<std::string> labels_;
  std::vector<WhyCharacter> characters_;
};

}  // namespace

void write_why_html(Output& out, const WhyReport& report) { HtmlWriter(out, report).write(); }

}  // namespace regard
