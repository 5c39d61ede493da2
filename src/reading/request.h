#pragma once
// What somebody wants to know about what was read, and what it will cost.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/model_config.h"

namespace regard {

enum class Statistic {
  lse,         // [l][h][t] log-sum-exp of the scores
  entropy,     // [l][h][t] in nats, over the keys
  sink,        // [l][h][t] weight on position 0, where most models have their attention sink (Xiao 2309.17453)
  sink_share,  // [l][h][t] what a learned sink took; 0 where the model has none
  distance,    // [l][h][t] mean distance, sum P |i - j|
  previous,    // [l][h][t] weight on the position before (Olsson 2022)
  duplicate,   // [l][h][t] mass on earlier occurrences of the same token
  induction,   // [l][h][t] mass on the positions after earlier occurrences of the same token
  column_sum,  // [l][h][s] how much each key was read by all rows
  distances,   // [l][h][bin] how much was read at which distance by all rows, bins doubling
  copying,     // [l][h] share of the rows that read most a key holding the token that comes next (Wu 2404.15574)
  value_norm,  // [l][h][s] ||v_s W_O^h||: what a weight on that key moves the residual by (Kobayashi 2020)
  weights,     // [l][h][row][s] every weight of the chosen rows
  top,         // [l][h][row] the strongest reads of the chosen rows
  groups,      // [l][h][row][group] mass per group of positions, of the chosen rows
};

struct StatisticInfo {
  Statistic statistic;
  std::string_view name;     // in --stats and in JSON
  std::string_view meaning;  // for a person, in one line
  bool per_row = false;      // one number per layer, head and row of the text
};
std::span<const StatisticInfo> statistics();
const StatisticInfo& info(Statistic statistic);
// "lse,entropy" or "all" (all but groups, which need to be told the groups). Error{usage} naming those there are.
std::vector<Statistic> parse_statistics(std::string_view text);

struct ReadingRequest {
  // Empty: all, all, the last one. Negative numbers count from the end.
  std::vector<std::int64_t> layers, heads, rows;
  std::vector<Statistic> statistics = {Statistic::lse, Statistic::entropy, Statistic::column_sum, Statistic::weights,
                                       Statistic::top};
  std::int64_t top = 8;              // reads per row
  std::vector<std::int32_t> groups;  // [tokens] each position's group, -1: none; for Statistic::groups
  bool resid = false;                // the residual of the chosen rows, at every layer's input and at the end
  int sequence = 0;                  // of the state

  bool has(Statistic statistic) const;
};

// The request with everything filled in and counted from 0, for a text of `tokens` tokens. Error{usage} names what is
// not there, Error{bad_input} a text without tokens or groups that do not fit.
ReadingRequest resolve(ReadingRequest request, const ModelConfig& config, std::int64_t tokens);

// Bytes that the results and the work of reading take, beside the model's own (weights, cache, scratch): linear in the
// tokens, but for the weights of chosen rows, which are rows x tokens.
std::int64_t bytes_needed(const ReadingRequest& request, const ModelConfig& config, std::int64_t tokens);

}  // namespace regard
