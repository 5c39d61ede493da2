#include "report/truth_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/json_documents.h"
#include "report/phrases.h"
#include "weights/default_model.h"

namespace regard {
namespace {

constexpr int kMethodColumns = 22;

double share(double sum, std::int64_t of) { return of > 0 ? sum / static_cast<double>(of) : std::nan(""); }
// Rounded down: 100.0 % are all.
std::string share_in_words(double sum, std::int64_t of) {
  return of > 0 ? fmt::format("{:.1f} %", std::floor(1000 * share(sum, of)) / 10) : "–";
}
std::string mean_in_words(double sum, std::int64_t of) { return of > 0 ? fmt::format("{:.3f}", share(sum, of)) : "–"; }

std::string joined(std::span<const std::string> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

// The other methods that name the cause or carrier at least as often as the first does.
std::vector<std::string> as_good(const TruthTable& table, const TruthGroup& group) {
  std::vector<std::string> titles;
  for (std::size_t m = 1; m < table.methods.size(); ++m)
    if (group.answered > 0 && group.scores[m].either >= group.scores[0].either)
      titles.push_back(table.methods[m].title);
  return titles;
}

std::vector<std::string> findings(const TruthTable& table) {
  const TruthGroup all = table.sum({});
  if (all.answered == 0) return {"The model answers none of the sentences rightly, so there is nothing to explain."};
  std::vector<std::string> sentences;
  sentences.push_back(fmt::format("`why` ({}) names the cause or its carrier in {} of {} sentences ({}).",
                                  table.methods[0].title, grouped(std::llround(all.scores[0].either)),
                                  grouped(all.answered), share_in_words(all.scores[0].either, all.answered)));
  const auto say = [&](const std::string& where, const TruthGroup& group) {
    const std::vector<std::string> others = as_good(table, group);
    if (group.answered == 0) return;
    sentences.push_back(others.empty() ? fmt::format("{}: no other method is as good.", where)
                                       : fmt::format("{}: as good or better: {}.", where, joined(others)));
  };
  say("In all", all);
  for (const std::string& kind : table.kinds()) say("In " + kind, table.sum(kind));
  return sentences;
}

void write_scores(JsonWriter& json, const TruthTable& table, const TruthGroup& group) {
  json.member("asked", group.asked);
  json.member("facts", group.facts);
  json.member("answered", group.answered);
  json.member("with_carrier", group.with_carrier);
  json.key("methods");
  json.begin_object();
  for (std::size_t m = 0; m < table.methods.size(); ++m) {
    const TruthScore& score = group.scores[m];
    json.key(table.methods[m].name);
    json.begin_object();
    json.member("cause_first", share(score.cause, group.answered));
    json.member("cause_or_carrier_first", share(score.either, group.answered));
    json.member("mean_reciprocal_rank", share(score.reciprocal, group.answered));
    json.end_object();
  }
  json.end_object();
}

}  // namespace

TruthScore& TruthScore::operator+=(const TruthScore& other) {
  cause += other.cause;
  either += other.either;
  reciprocal += other.reciprocal;
  return *this;
}

TruthGroup& TruthGroup::operator+=(const TruthGroup& other) {
  asked += other.asked;
  facts += other.facts;
  answered += other.answered;
  with_carrier += other.with_carrier;
  scores.resize(std::max(scores.size(), other.scores.size()));
  for (std::size_t m = 0; m < other.scores.size(); ++m) scores[m] += other.scores[m];
  return *this;
}

std::vector<std::string> TruthTable::kinds() const {
  std::vector<std::string> kinds;
  for (const TruthGroup& group : groups)
    if (std::find(kinds.begin(), kinds.end(), group.kind) == kinds.end()) kinds.push_back(group.kind);
  return kinds;
}

TruthGroup TruthTable::sum(const std::optional<std::string>& kind) const {
  TruthGroup sum{.kind = kind.value_or("all"), .language = "both", .scores = std::vector<TruthScore>(methods.size())};
  for (const TruthGroup& group : groups)
    if (!kind || group.kind == *kind) sum += group;
  return sum;
}

void write_json(Output& out, const TruthTable& table) {
  JsonWriter json(out);
  begin_document(json, "bench", &table.model, {});
  json.member("bench", "truth");
  json.member("count", table.count);
  if (!table.recipe.empty()) json.member("recipe", table.recipe);
  json.key("methods");
  json.begin_array();
  for (const TruthMethod& method : table.methods) {
    json.begin_object();
    json.member("name", method.name);
    json.member("title", method.title);
    json.member("how", method.how);
    json.end_object();
  }
  json.end_array();
  json.key("all");
  json.begin_object();
  write_scores(json, table, table.sum({}));
  json.end_object();
  json.key("groups");
  json.begin_array();
  for (const TruthGroup& group : table.groups) {
    json.begin_object();
    json.member("kind", group.kind);
    json.member("language", group.language);
    write_scores(json, table, group);
    json.end_object();
  }
  json.end_array();
  json.key("findings");
  json.begin_array();
  for (const std::string& sentence : findings(table)) json.string(sentence);
  json.end_array();
  json.end_object();
  json.end_document();
}

void write_markdown(Output& out, const TruthTable& table) {
  const auto line = [&](const std::string& text) { out.write(text + "\n"); };
  const TruthGroup all = table.sum({});
  const std::vector<std::string> kinds = table.kinds();
  std::vector<TruthGroup> columns;
  for (const std::string& kind : kinds) columns.push_back(table.sum(kind));
  columns.push_back(all);

  line("# Which explanations are true\n");
  line("Made by the program, not by hand:\n");
  line(fmt::format("    regard bench truth{}{} -o FILE.md\n",
                   table.model.name == kDefaultModel ? "" : " " + table.model.name,
                   table.count == kTruthCount ? "" : fmt::format(" --count {}", table.count)));
  if (!table.recipe.empty())
    line(fmt::format("The model's recipe, as it stands in its file:\n\n    {}\n", table.recipe));
  line(fmt::format(
      "Every sentence of [the micro-language](../models/README.md) carries its planted cause: the earlier word that "
      "decides the answer. All but references have a carrier too, a word without which the cause does not say it: the "
      "word that has two senses, the key of a value, the word before in a list, what a negation is about. {} held-out "
      "sentences of each kind in each language were asked, {} in all, which say {} different facts; {} ({}) were "
      "answered rightly, and only these are explained. The metric is logit(answer) - logit(what would be right if the "
      "cause were another), at the last row. Each method gives every position a number; the largest comes first, equal "
      "ones to the method's disadvantage. Methods that know a direction count what speaks for the answer, where "
      "nothing "
      "else is said. The first token (<s>, the attention sink) and the last row itself are not ranked.\n",
      table.count, grouped(all.asked), grouped(all.facts), grouped(all.answered),
      share_in_words(double(all.answered), all.asked)));
  line(
      "One thing is not the same for all methods: a model of `regard train` has learnt with words hidden from all that "
      "come after (one in so many sentences, see the recipe), and no other change or reading here was part of its "
      "learning. [A model that never missed a word](truth-never-hidden.md) says how much that is worth.\n");

  const auto heading = [&](const char* first) {
    std::string text = fmt::format("| {} |", first), rule = "|---|";
    for (const TruthGroup& column : columns) {
      text += fmt::format(" {} |", column.kind);
      rule += "---:|";
    }
    line(text + "\n" + rule);
  };
  using Cell = std::function<std::string(const TruthGroup&, std::size_t)>;
  const auto rows = [&](const Cell& cell) {
    for (std::size_t m = 0; m < table.methods.size(); ++m) {
      std::string text = fmt::format("| {} |", table.methods[m].title);
      for (const TruthGroup& column : columns) text += fmt::format(" {} |", cell(column, m));
      line(text);
    }
    line("");
  };
  line("## The cause, or its carrier, comes first\n");
  heading("method");
  rows([](const TruthGroup& g, std::size_t m) { return share_in_words(g.scores[m].either, g.answered); });
  line("## The cause itself comes first\n");
  line(
      "A carrier is needed as much as the cause is: of `not open`, both words say what the door is. So where there is "
      "one, the order of the two is no fault.\n");
  heading("method");
  rows([](const TruthGroup& g, std::size_t m) { return share_in_words(g.scores[m].cause, g.answered); });
  line("## Mean reciprocal rank of the cause\n");
  heading("method");
  rows([](const TruthGroup& g, std::size_t m) { return mean_in_words(g.scores[m].reciprocal, g.answered); });

  line("## What it says\n");
  for (const std::string& sentence : findings(table)) line("- " + sentence);
  line("\n## By language: the cause, or its carrier, comes first\n");
  std::string heads = "| kind | language | facts | answered | with a carrier |", rule = "|---|---|---:|---:|---:|";
  for (const TruthMethod& method : table.methods) {
    heads += fmt::format(" {} |", method.title);
    rule += "---:|";
  }
  line(heads + "\n" + rule);
  for (const TruthGroup& group : table.groups) {
    std::string text = fmt::format("| {} | {} | {} | {} of {} | {} |", group.kind, group.language, group.facts,
                                   group.answered, group.asked, group.with_carrier);
    for (const TruthScore& score : group.scores)
      text += fmt::format(" {} |", share_in_words(score.either, group.answered));
    line(text);
  }
  line("\n## The methods\n");
  for (const TruthMethod& method : table.methods)
    line(fmt::format("- **{}** (`{}`): {}", method.title, method.name, method.how));
}

Page truth_page(const TruthTable& table) {
  Page page{.title = "bench truth", .lines = {}};
  const TruthGroup all = table.sum({});
  std::vector<TruthGroup> columns;
  for (const std::string& kind : table.kinds()) columns.push_back(table.sum(kind));
  columns.push_back(all);
  const auto width = [](const TruthGroup& column) {
    return std::max<int>(8, static_cast<int>(column.kind.size()) + 1);
  };
  page.add_line(fmt::format("{}: {} of {} held-out sentences answered rightly, and only these are explained.",
                            table.model.name, grouped(all.answered), grouped(all.asked)));
  page.add_line("How often each method puts the planted cause, or its carrier, first; the cause itself;");
  page.add_line("and the mean reciprocal rank of the cause:");
  page.add_line();
  std::string heads = padded("", kMethodColumns);
  for (const TruthGroup& column : columns) heads += padded(column.kind, width(column), true);
  page.add_line(heads + padded("cause", 8, true) + padded("rank", 7, true), {.faint = true});
  for (std::size_t m = 0; m < table.methods.size(); ++m) {
    Line& line = page.add_line(padded(table.methods[m].title, kMethodColumns));
    for (const TruthGroup& column : columns)
      line.push_back(piece(padded(share_in_words(column.scores[m].either, column.answered), width(column), true)));
    line.push_back(piece(padded(share_in_words(all.scores[m].cause, all.answered), 8, true), {.faint = true}));
    line.push_back(piece(padded(mean_in_words(all.scores[m].reciprocal, all.answered), 7, true), {.faint = true}));
  }
  page.add_line();
  for (const std::string& sentence : findings(table)) page.add_line(sentence);
  return page;
}

}  // namespace regard
