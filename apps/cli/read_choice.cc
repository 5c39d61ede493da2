#include "read_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "destination.h"
#include "inputs.h"
#include "interrupt.h"
#include "interrupt_tap.h"
#include "intervention/edit_tap.h"
#include "intervention/metric.h"
#include "intervention/prepared_edits.h"
#include "intervention_options.h"
#include "kernels/softmax.h"
#include "model/forward.h"
#include "model/taps.h"
#include "progress_line.h"
#include "reading/reading_tap.h"
#include "reading/selection.h"
#include "report/estimate.h"
#include "report/read_result.h"
#include "tensor/error.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {
namespace {

// Weights of chosen rows are written unless asked away up to this many numbers; above, they must be named.
constexpr std::int64_t kManyWeights = 16 << 20;

// What can be asked for, one line each.
std::string meanings() {
  std::string lines = "STATISTICS (--stats A,B,C or all):\n";
  for (const StatisticInfo& statistic : statistics())
    lines += fmt::format("  {:<26}{}\n", statistic.name, statistic.meaning);
  return lines;
}

std::vector<std::int64_t> chosen(const std::optional<std::string>& text, std::int64_t count, const char* what) {
  if (!text) return {};
  return select(*text == "all" ? "*" : *text == "last" ? "-1" : std::string_view(*text), count, what);
}

// Each position's group.
std::vector<std::int32_t> groups(const std::string& text, std::int64_t tokens) {
  std::vector<std::int32_t> group(static_cast<std::size_t>(tokens), -1);
  std::int32_t number = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++number) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    for (const std::int64_t position : select(std::string_view(text).substr(begin, end - begin), tokens, "position")) {
      if (group[static_cast<std::size_t>(position)] >= 0)
        throw Error(ErrorCode::usage, fmt::format("position {} is in two groups, --groups", position),
                    "put each position in one");
      group[static_cast<std::size_t>(position)] = number;
    }
    begin = end + 1;
  }
  return group;
}

std::vector<Statistic> asked_for(const ReadChoice& choice, const ModelConfig& config) {
  const std::vector<Statistic> asked = parse_statistics(*choice.statistics, &config);
  for (const Statistic statistic : parse_statistics(*choice.statistics))
    if (std::find(asked.begin(), asked.end(), statistic) == asked.end())
      remark(choice.options, fmt::format("regard: {} of the family {} is not known and left out: {}",
                                         info(statistic).name, config.family, why_not(statistic, config)));
  return asked;
}

// The rows asked for; empty: the last one.
std::vector<std::int64_t> chosen_rows(const ReadChoice& choice, const Model& model, std::span<const std::int32_t> ids) {
  if (choice.rows || model.config().causal) return chosen(choice.rows, std::ssize(ids), "row");
  const std::vector<std::int64_t> masked = mask_rows(model, ids);
  if (!masked.empty() && !choice.options.json)  // a document says it in "rows"
    remark(choice.options, fmt::format("regard: shown is what the mask token read, position {}; --rows chooses others",
                                       fmt::join(masked, ", ")));
  return masked;
}

}  // namespace

bool parse(ReadChoice& choice, const Words& words) {
  Arguments arguments("read", "What each position read: exact weights and statistics, at any length.",
                      meanings() +
                          "\nLIST is 5, 2:7 (7 excluded), -1 (from the end), 1,4 or * (also: all).\n"
                          "regard read smollm2 -p \"When Mary and John went to the store, John gave a drink to\"");
  Options& options = choice.options;
  options.declare_model(arguments);
  options.declare_text(arguments);
  arguments.text("--layers", choice.layers, "LIST", "default: all");
  arguments.text("--heads", choice.heads, "LIST", "default: all");
  arguments.text("--rows", choice.rows, "LIST",
                 "the positions whose reads are shown (default: the last; the mask token's of a model that reads both "
                 "ways)");
  arguments.text("--stats", choice.statistics, "A,B,C",
                 "of those below, or all (default: lse,entropy,column_sum,weights,top)");
  arguments.integer("--top", choice.top, 1, INT32_MAX,
                    "strongest reads per row and head, and candidates per layer of the lens (default 8)");
  arguments.text("--groups", choice.groups, "LIST;LIST", "groups of positions for --stats groups: 0:3;3:9");
  arguments.text("--token", choice.token, "ID|' text'",
                 "for --stats direct: of which token's logit (default: each row's first choice)");
  arguments.text("--against", choice.against, "ID|' text'", "less that of another token");
  arguments.flag("--resid", choice.resid, "also the residual of the rows, at every layer");
  arguments.text("--attention", choice.attention, "encoder|decoder|cross",
                 "of an encoder-decoder: which one (default: all three; -o takes one)");
  arguments.text("--decoder", choice.target, "TEXT",
                 "of an encoder-decoder: the decoder's text (default: what it makes of the source)");
  arguments.text("--decoder-ids", choice.target_ids, "1,2,3", "the same as token ids, the start token included");
  choice.intervention.declare_edits(arguments);
  choice.intervention.declare_contrast(arguments);
  options.declare_output(arguments, {".json", ".npz", ".csv", ".svg", ".html"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return false;
  choice.intervention.check_runs_are_used(false);
  return true;
}

ReadPlan plan_reading(const ReadChoice& choice, const Model& model, const std::vector<std::int32_t>& ids) {
  const ModelConfig& config = model.config();
  const auto tokens = std::ssize(ids);
  ReadPlan plan;
  ReadingRequest& request = plan.request;
  request.layers = chosen(choice.layers, config.layers, "layer");
  request.heads = chosen(choice.heads, config.heads, "head");
  request.rows = chosen_rows(choice, model, ids);
  if (choice.statistics) request.statistics = asked_for(choice, config);
  if (choice.groups) request.groups = groups(*choice.groups, tokens);
  if (choice.top && !request.has(Statistic::top) && !request.has(Statistic::lens))
    throw Error(ErrorCode::usage, "--top without the statistics top and lens", "add one to --stats");
  request.top = choice.top.value_or(request.top);
  request.candidates = choice.top.value_or(request.candidates);
  if (choice.against && !choice.token)
    throw Error(ErrorCode::usage, "--against without --token", "name the token to compare with it");
  if (choice.token && !request.has(Statistic::direct))
    throw Error(ErrorCode::usage, "--token without the statistic direct", "add direct to --stats");
  if (choice.token) request.token = parse_token(*choice.token, model.tokenizer());
  if (choice.against) request.against = parse_token(*choice.against, model.tokenizer());
  request.resid = choice.resid;
  request = resolve(request, config, tokens);

  const std::int64_t weights =
      std::ssize(request.layers) * std::ssize(request.heads) * std::ssize(request.rows) * tokens;
  // A page shows a few rows, by their weights; the sink is found by the column sums.
  const Options& options = choice.options;
  const bool page_only = !options.json && options.outputs.empty();
  const bool page =
      page_only || std::any_of(options.outputs.begin(), options.outputs.end(), [](const std::string& path) {
        return path.ends_with(".svg") || path.ends_with(".html");
      });
  const bool many = weights > kManyWeights;
  if (page && many && (!choice.statistics || !request.has(Statistic::weights)))
    throw Error(ErrorCode::usage, fmt::format("{} rows are too many to look at", request.rows.size()),
                "choose fewer --rows, or write --json or -o FILE.npz");
  if (!choice.statistics && many) {
    std::erase(request.statistics, Statistic::weights);
    remark(choice.options,
           fmt::format("regard: the weights of {} rows are {}; they are left out. To have them: --stats "
                       "lse,entropy,column_sum,weights,top",
                       request.rows.size(), human_bytes(weights * 4)));
  }
  plan.asked = request.statistics;
  if (!request.has(Statistic::column_sum)) request.statistics.push_back(Statistic::column_sum);
  if (page && !request.has(Statistic::weights)) request.statistics.push_back(Statistic::weights);
  return plan;
}

void announce(const Options& options, const Model& model, const ReadingRequest& request, std::int64_t tokens) {
  const double seconds = estimated_seconds(model, request, tokens);
  if (seconds < kLongSeconds) return;
  const std::int64_t cache = KeyValueCache::bytes_for(model.config(), tokens);
  const std::int64_t at_once = rows_per_pass(model.config(), tokens);
  const std::int64_t work = bytes_needed(request, model.config(), tokens) + scratch_bytes(model.config(), at_once);
  remark(options,
         fmt::format("regard: reading {} tokens takes about {:.0f} s and {} beside the file ({} cache, {} work)",
                     tokens, seconds, human_bytes(cache + work), human_bytes(cache), human_bytes(work)));
}

}  // namespace regard::cli
