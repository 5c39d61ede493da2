#include "reading/request.h"

#include <algorithm>
#include <numeric>

#include "parallel/parallel_for.h"
#include "reading/exact_sums.h"
#include "reading/placement.h"
#include "reading/selection.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr StatisticInfo kStatistics[] = {
    {Statistic::lse, "lse", "log-sum-exp of a row's scores", true},
    {Statistic::entropy, "entropy", "how evenly a row reads, in nats", true},
    {Statistic::sink, "sink", "weight on position 0", true},
    {Statistic::sink_share, "sink_share", "what a learned sink took of a row", true},
    {Statistic::distance, "distance", "how far back a row reads, on average", true},
    {Statistic::previous, "previous", "weight on the position before", true},
    {Statistic::duplicate, "duplicate", "weight on earlier occurrences of the row's token", true},
    {Statistic::induction, "induction", "weight on what followed earlier occurrences of the row's token", true},
    {Statistic::column_sum, "column_sum", "how much each position was read by all rows"},
    {Statistic::distances, "distances", "how much was read at which distance"},
    {Statistic::copying, "copying", "how often the strongest read holds the token that comes next"},
    {Statistic::value_norm, "value_norm", "how far one unit of weight on a position moves the residual"},
    {Statistic::weights, "weights", "every weight of the chosen rows"},
    {Statistic::top, "top", "the strongest reads of the chosen rows"},
    {Statistic::groups, "groups", "weight per group of positions, of the chosen rows"},
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

std::vector<Statistic> parse_statistics(std::string_view text) {
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
        if (s.statistic != Statistic::groups) add(s.statistic);
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

std::int64_t bytes_needed(const ReadingRequest& unresolved, const ModelConfig& config, std::int64_t tokens) {
  const ReadingRequest r = resolve(unresolved, config, tokens);
  const std::int64_t L = std::ssize(r.layers), H = std::ssize(r.heads), R = std::ssize(r.rows), T = tokens;
  const std::int64_t threads = thread_count(), f = sizeof(float), fixed = sizeof(std::int64_t);
  std::int64_t bytes = 0;
  for (Statistic s : r.statistics) {
    if (info(s).per_row) bytes += L * H * T * f;
    switch (s) {
      case Statistic::column_sum:  // the sums, the result, and each thread's part of one layer
        bytes += L * H * T * (fixed + f) + threads * (H + 1) * T * fixed;
        break;
      case Statistic::distances:
        bytes += L * H * T * fixed + threads * config.heads * (T + 2 * kLaneGroup) * fixed;
        break;
      case Statistic::copying:
        bytes += L * H * (fixed + f) + H * T * 2 * f;
        break;
      case Statistic::value_norm:
        bytes += L * H * T * f;
        bytes += L * config.heads * config.value_dim * config.value_dim * static_cast<std::int64_t>(sizeof(double));
        bytes += config.width * config.heads * config.value_dim * f;
        break;
      case Statistic::weights:
        bytes += L * H * R * T * f;
        break;
      case Statistic::top:
        bytes += L * H * R * r.top * 2 * f;
        break;
      case Statistic::groups:
        bytes += L * H * R * (1 + *std::max_element(r.groups.begin(), r.groups.end())) * f;
        break;
      default:
        break;
    }
  }
  if (r.resid) bytes += (config.layers + 1) * R * config.width * f;
  return bytes;
}

}  // namespace regard
