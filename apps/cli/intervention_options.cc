#include "intervention_options.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>
#include <utility>

#include "inputs.h"
#include "tensor/error.h"
#include "text/display.h"
#include "text/utf8.h"

namespace regard::cli {
namespace {

constexpr const char* kContrast = "contrast";

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.');
  });
}

// NAME=VALUE, cut at the first =.
std::pair<std::string, std::string> named(const std::string& option, const std::string& text) {
  const std::size_t cut = text.find('=');
  const std::string name = text.substr(0, cut);
  if (cut == std::string::npos || !is_name(name))
    throw Error(ErrorCode::usage, fmt::format("\"{}\" does not name a run, {}", display(text), option),
                fmt::format("write {} NAME=..., NAME of letters, digits, _ - and .", option));
  if (name == kClean)
    throw Error(ErrorCode::usage, fmt::format("a run cannot be called \"{}\", {}", name, option),
                "that is the run of the prompt without edits");
  return {name, text.substr(cut + 1)};
}

std::vector<std::int32_t> ids_of_list(const std::string& option, const std::string& text, const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> ids = parse_ids(option, text);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= tokenizer.vocabulary())
      throw Error(ErrorCode::bad_input, fmt::format("token id {} does not exist, place {} of {}", ids[i], i, option),
                  fmt::format("ids go from 0 to {}", tokenizer.vocabulary() - 1));
  return ids;
}

}  // namespace

void InterventionOptions::declare_edits(Arguments& arguments) {
  arguments.texts("--edit", edits, "EDIT", "what to change: \"block edge row=-1 key=4\" (may be repeated)");
  arguments.texts("--run", runs, "NAME=TEXT", "another text that edits take values from (may be repeated)");
  arguments.texts("--run-ids", runs_ids, "NAME=1,2,3", "the same by token ids");
}

void InterventionOptions::declare_contrast(Arguments& arguments) {
  arguments.text("--contrast", contrast, "TEXT", "the text to compare with, a run called contrast");
  arguments.text("--contrast-ids", contrast_ids, "1,2,3", "the same by token ids");
}

void InterventionOptions::declare_metric(Arguments& arguments) {
  arguments.text(
      "--metric", metric, "METRIC",
      "what to measure: logit T, logprob T, diff T T, prob, rank, kl, tvd or jsd; T is an id or ' text' "
      "(default: diff of the first and second choice); or cosine TEXT, of the two texts' embeddings (without "
      "TEXT: with its own before any change; the default where a model has no head)");
  arguments.text("--token", token, "T", "measure logprob T; most words begin with a space: \" Mary\"");
  arguments.text("--against", against, "T", "with --token A: measure diff A T");
  arguments.integer("--at", row, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
                    "measure after this position instead of the last; -1 counts from the end; a model that reads both "
                    "ways is measured in place of its mask token");
}

void InterventionOptions::declare_decoder(Arguments& arguments) {
  arguments.text("--decoder", decoder, "TEXT",
                 "of an encoder-decoder: the decoder's text (default: what it makes of the source)");
  arguments.text("--decoder-ids", decoder_ids, "1,2,3", "the same as token ids, the start token included");
}

Metric InterventionOptions::chosen_metric(const Model& model) const {
  const Tokenizer& tokenizer = model.tokenizer();
  if (metric && token) throw Error(ErrorCode::usage, "two metrics are given, --metric and --token", "give one of them");
  if (against && !token)
    throw Error(ErrorCode::usage, "--against without --token", "--token A --against B measures diff A B");
  if (metric) return parse_metric(*metric, tokenizer);
  if (!token) return default_metric(model.config());
  if (!against) return {.kind = MetricKind::logprob, .token = parse_token(*token, tokenizer)};
  if (parse_token(*token, tokenizer) == parse_token(*against, tokenizer))
    throw Error(ErrorCode::usage, "--token and --against are the same token", "name two");
  return {
      .kind = MetricKind::diff, .token = parse_token(*token, tokenizer), .against = parse_token(*against, tokenizer)};
}

std::map<std::string, std::vector<std::int32_t>> InterventionOptions::chosen_runs(const Options& options,
                                                                                  const Model& model) const {
  const Tokenizer& tokenizer = model.tokenizer();
  const auto ids_of = [&](const std::string& option, const std::string& text) {
    check_utf8(option, text);
    return text_ids(options, tokenizer, text);
  };
  std::map<std::string, std::vector<std::int32_t>> chosen;
  const auto add = [&](const std::string& option, const std::string& name, std::vector<std::int32_t> ids) {
    if (ids.empty())
      throw Error(ErrorCode::usage, fmt::format("run \"{}\" has no tokens, {}", name, option),
                  "give at least one token");
    check_length(ids, model.config());
    if (!chosen.emplace(name, std::move(ids)).second)
      throw Error(ErrorCode::usage, fmt::format("two runs are called \"{}\", {}", name, option),
                  "give each run a name of its own");
  };
  if (contrast) add("--contrast", kContrast, ids_of("--contrast", *contrast));
  if (contrast_ids) add("--contrast-ids", kContrast, ids_of_list("--contrast-ids", *contrast_ids, tokenizer));
  for (const std::string& run : runs) {
    const auto [name, text] = named("--run", run);
    add("--run", name, ids_of("--run", text));
  }
  for (const std::string& run : runs_ids) {
    const auto [name, list] = named("--run-ids", run);
    add("--run-ids", name, ids_of_list("--run-ids", list, tokenizer));
  }
  return chosen;
}

void InterventionOptions::check_runs_are_used(bool contrast_compares) const {
  std::vector<Edit> all;
  for (const PlacedEdit& placed : chosen_placed_edits()) all.push_back(placed.edit);
  const std::map<std::string, std::set<Site>> used = sites_needed(all);
  const auto check = [&](const std::string& option, const std::string& name) {
    if (!used.contains(name))
      throw Error(ErrorCode::usage, fmt::format("no --edit takes values from the run \"{}\", {}", name, option),
                  fmt::format("write from={} in an edit, or leave {} out", name, option));
  };
  for (const std::string& run : runs) check("--run", named("--run", run).first);
  for (const std::string& run : runs_ids) check("--run-ids", named("--run-ids", run).first);
  if (contrast && !contrast_compares) check("--contrast", kContrast);
  if (contrast_ids && !contrast_compares) check("--contrast-ids", kContrast);
}

ExperimentRequest InterventionOptions::request(const Options& options, const Model& model) const {
  ExperimentRequest request;
  if (decoder || decoder_ids)
    throw Error(ErrorCode::usage, fmt::format("{} has no encoder: it reads one text", model.config().family),
                "leave --decoder out");
  request.edits = chosen_edits();
  request.metric = chosen_metric(model);
  if (!of_all_rows(request.metric.kind))
    require_head(model.config(), "--metric \"cosine TEXT\" is what can be measured");
  request.runs = chosen_runs(options, model);
  check_runs_are_used(true);
  request.ids = prompt_ids(options, model.tokenizer());
  check_length(request.ids, model.config());
  choose_row(request, model);
  return request;
}

std::vector<Edit> InterventionOptions::chosen_edits() const {
  std::vector<Edit> chosen;
  for (const std::string& edit : edits) chosen.push_back(parse_edit(edit));
  return chosen;
}

std::vector<PlacedEdit> InterventionOptions::chosen_placed_edits() const {
  std::vector<PlacedEdit> chosen;
  for (const std::string& edit : edits) chosen.push_back(parse_placed_edit(edit));
  return chosen;
}

void InterventionOptions::choose_row(ExperimentRequest& request, const Model& model) const {
  if (of_all_rows(request.metric.kind)) {
    if (row)
      throw Error(ErrorCode::usage, "--at with a metric that is about all rows",
                  "leave --at out, or choose another metric");
    if (!request.metric.ids.empty()) check_length(request.metric.ids, model.config());
    return;
  }
  request.row = row ? *row : default_row(model, request.ids);
  const auto contrast = request.runs.find(kContrast);
  if (!row && !model.config().causal && contrast != request.runs.end())
    request.contrast_row = default_row(model, contrast->second);
}

}  // namespace regard::cli
