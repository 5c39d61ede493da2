#include "reading/request.h"

#include <algorithm>
#include <numeric>

#include "model/forward.h"
#include "parallel/parallel_for.h"
#include "reading/direct_effects.h"
#include "reading/exact_sums.h"
#include "reading/flow.h"
#include "reading/lens.h"
#include "reading/mixing.h"
#include "reading/placement.h"
#include "reading/replay.h"
#include "reading/rollout.h"
#include "reading/selection.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr StatisticInfo kStatistics[] = {
    {Statistic::lse, "lse", "log-sum-exp of a row's scores", true},
    {Statistic::entropy, "entropy", "how evenly a row reads, in nats", true},
    {Statistic::sink, "sink", "weight on position 0", true},
    {Statistic::sink_share, "sink_share", "what a learned sink took of a row", true},
    {Statistic::distance, "distance", "how far from itself a row reads, on average", true},
    {Statistic::previous, "previous", "weight on the position before", true},
    {Statistic::duplicate, "duplicate", "weight on earlier occurrences of the row's token", true},
    {Statistic::induction, "induction", "weight on what followed earlier occurrences of the row's token", true},
    {Statistic::column_sum, "column_sum", "how much each position was read by all rows"},
    {Statistic::distances, "distances", "how much was read at which distance"},
    {Statistic::copying, "copying", "how often the strongest read holds the token that comes next"},
    {Statistic::value_norm, "value_norm", "how far one unit of weight on a position moves the residual"},
    {Statistic::mixing, "mixing", "how much a row takes from elsewhere, against what it keeps of itself"},
    {Statistic::norm_weighted_column_sum, "norm_weighted_column_sum", "column_sum times value_norm"},
    {Statistic::weights, "weights", "every weight of the chosen rows"},
    {Statistic::norm_weighted, "norm_weighted", "weight times value_norm: how far each read moves the chosen rows"},
    {Statistic::top, "top", "the strongest reads of the chosen rows"},
    {Statistic::groups, "groups", "weight per group of positions, of the chosen rows"},
    {Statistic::rollout, "rollout", "where the chosen rows come from, through all layers below"},
    {Statistic::flow, "flow",
     "how much each position, and its own residual, brings the chosen rows to where attention ends"},
    {Statistic::lens, "lens", "what the chosen rows would say next if the model stopped after each layer"},
    {Statistic::direct, "direct", "what every layer, head and feed-forward adds by itself to the chosen rows' answer"},
};

std::string names() {
  std::string all;
  for (const StatisticInfo& s : kStatistics) all += (all.empty() ? "" : ", ") + std::string(s.name);
  return all;
}

std::vector<std::int64_t> everything(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

std::span<const StatisticInfo> statistics() { return kStatistics; }

const StatisticInfo& info(Statistic statistic) {
  return *std::find_if(std::begin(kStatistics), std::end(kStatistics),
                       [&](const StatisticInfo& s) { return s.statistic == statistic; });
}

std::string why_not(Statistic statistic, const ModelConfig& config) {
  const bool direct = statistic == Statistic::direct;
  if ((direct || statistic == Statistic::lens) && !config.head) return "the model has no head that says tokens";
  if (statistic == Statistic::copying && !config.causal)
    return "rows read both ways, so that the next token is seen and not foretold";
  if ((direct || statistic == Statistic::mixing || statistic == Statistic::flow) &&
      config.norm_place == NormPlace::around)
    return "a norm joins what its heads add";
  if (direct && config.norm_place == NormPlace::after)
    return "a norm follows every sum, so that no part stays what it was";
  if (direct && config.cross_attention) return "it also reads a source, which none of its parts is";
  if (direct && (config.head_transform || config.embedding_width != config.width))
    return "its head is not one product, so that no part has a share of its own";
  return {};
}

std::vector<Statistic> parse_statistics(std::string_view text, const ModelConfig* config) {
  std::vector<Statistic> chosen;
  const auto add = [&](Statistic s) {
    if (std::find(chosen.begin(), chosen.end(), s) == chosen.end()) chosen.push_back(s);
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    begin = end + 1;
    if (name == "all") {
      for (const StatisticInfo& s : kStatistics)
        if (s.statistic != Statistic::groups && (config == nullptr || is_known(s.statistic, *config))) add(s.statistic);
      continue;
    }
    const auto found = std::find_if(std::begin(kStatistics), std::end(kStatistics),
                                    [&](const StatisticInfo& s) { return s.name == name; });
    if (found == std::end(kStatistics))
      throw Error(ErrorCode::usage, fmt::format("there is no statistic '{}'", name),
                  fmt::format("there are {}, and all", names()));
    add(found->statistic);
  }
  return chosen;
}

bool ReadingRequest::has(Statistic statistic) const {
  return std::find(statistics.begin(), statistics.end(), statistic) != statistics.end();
}

ReadingRequest resolve(ReadingRequest request, const ModelConfig& config, std::int64_t tokens) {
  if (tokens <= 0) throw Error(ErrorCode::bad_input, "there is nothing to read in a text of no tokens");
  request.layers = request.layers.empty() ? everything(config.layers) : select(request.layers, config.layers, "layer");
  request.heads = request.heads.empty() ? everything(config.heads) : select(request.heads, config.heads, "head");
  request.rows = request.rows.empty() ? std::vector<std::int64_t>{tokens - 1} : select(request.rows, tokens, "row");
  if (request.statistics.empty() && !request.resid)
    throw Error(ErrorCode::usage, "no statistic was asked for", fmt::format("there are {}, and all", names()));
  if (request.has(Statistic::top) && request.top < 1)
    throw Error(ErrorCode::usage, fmt::format("{} strongest reads per row cannot be had", request.top),
                "ask for at least 1");
  request.top = std::min(request.top, tokens);
  if (request.has(Statistic::lens) && request.candidates < 1)
    throw Error(ErrorCode::usage, fmt::format("{} candidates per layer cannot be had", request.candidates),
                "ask for at least 1");
  request.candidates = std::min(request.candidates, config.vocabulary);
  for (const Statistic statistic : request.statistics)
    if (!is_known(statistic, config))
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} of the family {} is not known: {}", info(statistic).name, config.family,
                              why_not(statistic, config)),
                  "ask for other statistics");
  if (request.against && !request.token)
    throw Error(ErrorCode::usage, "a token to compare with was given, but not which one to compare", "name both");
  for (const std::optional<std::int32_t>& token : {request.token, request.against}) {
    if (token && !request.has(Statistic::direct))
      throw Error(ErrorCode::usage, "a token was given, but no statistic looks at one", "ask for the statistic direct");
    if (token && (*token < 0 || *token >= config.vocabulary))
      throw Error(ErrorCode::bad_input,
                  fmt::format("token id {} is outside the vocabulary of {}", *token, config.vocabulary),
                  fmt::format("ids go from 0 to {}", config.vocabulary - 1));
  }
  if (request.has(Statistic::groups)) {
    if (std::ssize(request.groups) != tokens)
      throw Error(ErrorCode::bad_input,
                  fmt::format("the groups cover {} positions, the text has {}", request.groups.size(), tokens),
                  "give each position a group, -1 for none");
    const std::int32_t least = *std::min_element(request.groups.begin(), request.groups.end());
    if (least < -1) throw Error(ErrorCode::bad_input, fmt::format("there is no group {}", least), "groups start at 0");
    if (*std::max_element(request.groups.begin(), request.groups.end()) < 0)
      throw Error(ErrorCode::bad_input, "no position is in a group");
  } else if (!request.groups.empty()) {
    throw Error(ErrorCode::usage, "groups were given, but their statistic was not asked for",
                "ask for the statistic groups");
  }
  return request;
}

std::vector<Statistic> statistics_read(const ReadingRequest& request) {
  std::vector<Statistic> all = request.statistics;
  const auto need = [&](Statistic statistic, Statistic by) {
    if (request.has(by) && std::find(all.begin(), all.end(), statistic) == all.end()) all.push_back(statistic);
  };
  need(Statistic::weights, Statistic::norm_weighted);
  need(Statistic::value_norm, Statistic::norm_weighted);
  need(Statistic::column_sum, Statistic::norm_weighted_column_sum);
  need(Statistic::value_norm, Statistic::norm_weighted_column_sum);
  return all;
}

std::int64_t bytes_needed(const ReadingRequest& unresolved, const ModelConfig& config, std::int64_t tokens) {
  const ReadingRequest r = resolve(unresolved, config, tokens);
  const std::int64_t L = std::ssize(r.layers), H = std::ssize(r.heads), R = std::ssize(r.rows), T = tokens;
  const std::int64_t threads = thread_count(), f = sizeof(float), fixed = sizeof(std::int64_t);
  const std::int64_t norm_products =
      config.layers * config.heads * config.value_dim * config.value_dim * static_cast<std::int64_t>(sizeof(double)) +
      config.width * config.heads * config.value_dim * f;
  // What stays; what is there while the rows pass only; what is there afterwards only.
  std::int64_t results = 0, passes = 0, afterwards = 0;
  for (Statistic s : statistics_read(r)) {
    if (info(s).per_row) results += L * H * T * f;
    switch (s) {
      case Statistic::column_sum:  // the exact sums, and each thread's part of one layer
        results += L * H * T * f;
        passes += L * H * T * fixed + threads * (H + 1) * T * fixed;
        break;
      case Statistic::distances:
        passes += L * H * distances_read(config, T) * fixed +
                  threads * config.heads * (distances_read(config, T) + 2 * kLaneGroup) * fixed;
        break;
      case Statistic::copying:
        results += L * H * f;
        passes += L * H * fixed + H * T * 2 * f;
        break;
      case Statistic::value_norm:
        results += L * H * T * f;
        passes += norm_products;
        break;
      case Statistic::mixing:
        results += L * T * f;
        passes += MixingTap::work_bytes(config, rows_per_pass(config, T));
        break;
      case Statistic::norm_weighted_column_sum:
        results += L * H * T * f;
        break;
      case Statistic::weights:
      case Statistic::norm_weighted:
        results += L * H * R * T * f;
        break;
      case Statistic::top:
        results += L * H * R * r.top * 2 * f;
        break;
      case Statistic::groups:
        results += L * H * R * (1 + *std::max_element(r.groups.begin(), r.groups.end())) * f;
        break;
      case Statistic::rollout:
        results += (config.layers + 1) * R * T * f;
        afterwards += rollout_bytes(T, R) + Replay::bytes_needed(config, T);
        break;
      case Statistic::flow:
        results += FlowTap::bytes_needed(config, T, L, R);
        break;
      case Statistic::lens:
        results += (config.layers + 1) * R * static_cast<std::int64_t>(sizeof(LensRow) + r.candidates * sizeof(Guess));
        afterwards += lens_bytes(config, R);
        break;
      case Statistic::direct:
        results += DirectEffectsTap::bytes_needed(config, R);
        break;
      default:
        break;
    }
  }
  if (r.resid || r.has(Statistic::lens)) results += (config.layers + 1) * R * config.width * f;
  return results + std::max(passes, afterwards);
}

}  // namespace regard
