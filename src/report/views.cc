#include "report/views.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/phrases.h"
#include "report/shaded_text.h"
#include "text/display.h"
#include "weights/catalogue.h"

namespace regard {
namespace {

void add_fact(Page& page, const std::string& name, const std::string& value) {
  Line& line = page.add_line(padded(name, 13), kFaint);
  line.push_back(piece(value));
}

}  // namespace

Page models_page(std::span<const ListedModel> models, int width) {
  Page page{.title = "models", .lines = {}};
  for (const ListedModel& model : models) {
    Line& line = page.add_line(padded(model.name, 14), kTitle);
    line.push_back(piece(model.here ? "here       " : "not here   ", model.here ? Style{} : kFaint));
    line.push_back(piece(padded(human_bytes(model.here ? model.installed_bytes : model.download_bytes), 10, true)));
    line.push_back(piece("  " + model.licence));
    page.add_line("  " + model.description);
    page.add_line(model.here ? "  " + display(model.path) : "  get it: regard fetch " + model.name, kFaint);
  }
  (void)width;
  return page;
}

Page fetch_page(const FetchResult& result) {
  Page page{.title = "fetch " + result.model.name, .lines = {}};
  Line& line = page.add_line(result.model.name, kTitle);
  line.push_back(piece(result.was_here ? " was here already; its checksums are right" : " is here now"));
  add_fact(page, "file", display(result.model.path));
  add_fact(page, "size", human_bytes(result.model.installed_bytes));
  if (!result.model.licence.empty() || !result.licence_file.empty())
    add_fact(page, "licence",
             result.licence_file.empty() ? result.model.licence
                                         : (result.model.licence.empty() ? "see" : result.model.licence + ",") + " " +
                                               display(result.licence_file));
  add_fact(page, "try", fmt::format("regard read {} -p \"{}\"", result.model.name, result.text));
  return page;
}

Page convert_page(const ConvertResult& result) {
  Page page{.title = "convert", .lines = {}};
  page.add_line(display(result.path), kTitle).push_back(piece(" is written"));
  add_fact(page, "size", human_bytes(result.bytes));
  add_fact(page, "tensors",
           fmt::format("{}{}", result.tensors,
                       result.widened == 0 ? "" : fmt::format(", {} of them widened to f32", result.widened)));
  return page;
}

Page info_page(const InfoResult& result, int width) {
  (void)width;
  const ModelConfig& config = *result.model.config;
  Page page{.title = result.model.name, .lines = {}};
  page.add_line(display(result.model.name), kTitle);
  add_fact(page, "family", display(config.family));
  add_fact(page, "layers", fmt::format("{} (L)", config.layers));
  add_fact(page, "heads", fmt::format("{} query (H), {} key/value (G)", config.heads, config.kv_heads));
  add_fact(page, "head width", fmt::format("{} query/key (D), {} value (E)", config.head_dim, config.value_dim));
  add_fact(page, "model width",
           fmt::format("{} (C), feed-forward {} (F)", grouped(config.width), grouped(config.hidden)));
  add_fact(page, "vocabulary", fmt::format("{} (V), {}", grouped(config.vocabulary), result.tokenizer));
  add_fact(page, "context",
           fmt::format("{} tokens, {} of key/value cache each", grouped(config.context),
                       human_bytes(result.cache_bytes_per_token)));
  if (!config.causal) add_fact(page, "reads", "both ways: every row sees what comes before it and after it");
  if (!config.head) add_fact(page, "head", "none: it says no tokens, its rows are what it is for");
  std::int64_t windowed = 0, widest = 0;
  for (const std::int64_t window : config.window) {
    windowed += window > 0;
    widest = std::max(widest, window);
  }
  add_fact(page, "window",
           windowed == 0 ? "none: every layer sees the whole text"
                         : fmt::format("{} keys in {} of {} layers", widest, windowed, config.layers));
  std::string stored;
  for (const auto& [dtype, as] : result.stored)
    stored += fmt::format("{}{} {} ({} tensors)", stored.empty() ? "" : ", ", info(dtype).name, human_bytes(as.bytes),
                          as.tensors);
  add_fact(page, "stored as", stored);
  for (const std::string& file : result.files) add_fact(page, "file", display(file));
  add_fact(page, "size", human_bytes(result.bytes));
  std::string targets;
  for (const std::string& target : result.targets)
    targets += (targets.empty() ? "" : ", ") + target + (target == result.target ? " (in use)" : "");
  add_fact(page, "runs on", fmt::format("{}; {} thread{}", targets, result.threads, result.threads == 1 ? "" : "s"));
  return page;
}

Page tokens_page(const TokensResult& result, int width) {
  Page page{.title = "tokens", .lines = {}};
  int widest = 4;
  for (const TokenPiece& token : result.tokens)
    widest = std::max(widest, columns(std::string_view(in_quotes(token.bytes, width / 2))));
  page.add_line(padded("position", 8, true) + padded("id", 8, true) + "  " + padded("text", widest) + "  bytes",
                kFaint);
  for (std::size_t i = 0; i < result.tokens.size(); ++i) {
    const TokenPiece& token = result.tokens[i];
    Line& line = page.add_line(padded(std::to_string(i), 8, true), kFaint);
    line.push_back(piece(padded(std::to_string(token.id), 8, true) + "  "));
    line.push_back(piece(padded(in_quotes(token.bytes, width / 2), widest)));
    line.push_back(piece("  " + hex(token.bytes, " "), kFaint));
  }
  page.add_line(fmt::format("{} token{}", result.tokens.size(), result.tokens.size() == 1 ? "" : "s"), kFaint);
  return page;
}

std::span<const Candidate> first_candidates(std::span<const Candidate> candidates) {
  return candidates.first(std::min<std::size_t>(3, candidates.size()));
}

void add_candidates(Page& page, std::span<const Candidate> candidates, int width) {
  int widest = 0;
  for (const Candidate& candidate : candidates)
    widest = std::max(widest, columns(std::string_view(in_quotes(candidate.token.bytes))));
  for (const Candidate& candidate : candidates) {
    const double p = std::exp(candidate.logprob);
    Line& line = page.add_line("  " + padded(in_quotes(candidate.token.bytes), widest));
    line.push_back(piece(padded(percent(p), 9, true) + "  "));
    line.push_back(piece(bar(p, std::clamp(width - widest - 14, 8, 48)), {.ink = kCool}));
    line.back().note = fmt::format("id {}, logit {:.4f}, log-probability {:.4f}", candidate.token.id, candidate.logit,
                                   candidate.logprob);
  }
}

Page logits_page(const LogitsResult& result, int width, bool coloured) {
  const bool in_place = reads_both_ways(result.model);
  Page page{.title = in_place ? "in place" : "next token", .lines = {}};
  Line& head = page.add_line(
      in_place ? "in place of " + in_quotes(result.tokens[static_cast<std::size_t>(result.row)].bytes) : "next token",
      kTitle);
  if (in_place || result.row + 1 < std::ssize(result.tokens))
    head.push_back(piece(fmt::format("  {}position {}", in_place ? "" : "after ", result.row), kFaint));
  add_candidates(page, result.next, width);
  if (result.token_logprob.empty()) return page;

  // The text, shaded by surprise: a token that came with one in e^8 or less is fully shaded.
  constexpr double kFullySurprised = 8;
  page.add_line();
  Line& title = page.add_line("the text, shaded by surprise", kTitle);
  double sum = 0;
  for (const float logprob : result.token_logprob) sum += logprob;
  title.push_back(piece(
      fmt::format("  (mean log-probability {:.3f} per token)", sum / static_cast<double>(result.token_logprob.size())),
      kFaint));
  std::vector<ShadedToken> tokens;
  for (std::size_t i = 0; i < result.tokens.size(); ++i) {
    const double logprob = i == 0 ? 0 : result.token_logprob[i - 1];
    tokens.push_back({.bytes = result.tokens[i].bytes,
                      .value = std::clamp(-logprob / kFullySurprised, 0.0, 1.0),
                      .note = i == 0 ? "" : fmt::format("probability {}", percent(std::exp(logprob))),
                      .marked = false,
                      .faint = i == 0});
  }
  for (Line& line : shaded_text(tokens, {.width = width, .most_lines = 24, .coloured = coloured}))
    page.lines.push_back(std::move(line));
  return page;
}

}  // namespace regard
