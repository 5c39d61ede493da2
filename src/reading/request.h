#pragma once
// What somebody wants to know about what was read, and what it will cost.

#include <cstdint>
#include <optional>
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
  mixing,      // [l][t] how much a row takes from elsewhere against what it keeps of itself (Kobayashi 2021)
  norm_weighted_column_sum,  // [l][h][s] column_sum x value_norm
  weights,                   // [l][h][row][s] every weight of the chosen rows
  norm_weighted,             // [l][h][row][s] weight x value_norm, ||P f(x)|| of the chosen rows (Kobayashi 2020)
  top,                       // [l][h][row] the strongest reads of the chosen rows
  groups,                    // [l][h][row][group] mass per group of positions, of the chosen rows
  rollout,                   // [layer 0..L][row][s] of the chosen rows, over all heads (Abnar 2020)
  flow,    // [l][row][s] and the residual [l][row]: what brings the chosen rows closer to their sum (Ferrando 2024)
  lens,    // [layer 0..L][row] what would come next if the model stopped there (nostalgebraist 2020)
  direct,  // what each part adds by itself to the chosen rows' logit, of all layers and heads
};

struct StatisticInfo {
  Statistic statistic;
  std::string_view name;     // in --stats and in JSON
  std::string_view meaning;  // for a person, in one line
  bool per_row = false;      // one number per layer, head and row of the text
};
std::span<const StatisticInfo> statistics();
const StatisticInfo& info(Statistic statistic);
// "lse,entropy" or "all" (all but groups, which need to be told the groups, and those that the family of `config` does
// not have). Error{usage} naming those there are.
std::vector<Statistic> parse_statistics(std::string_view text, const ModelConfig* config = nullptr);
// Why a family does not have a statistic; empty: it has it. mixing and flow take apart what attention adds, which a
// norm between attention and the sum forbids (Gemma); direct also needs that nothing but the last norm stands between
// the sum of all parts and the logits; lens and direct need a head; copying needs that the next token is not seen.
std::string why_not(Statistic statistic, const ModelConfig& config);
inline bool is_known(Statistic statistic, const ModelConfig& config) { return why_not(statistic, config).empty(); }

struct ReadingRequest {
  // Empty: all, all, the last one. Negative numbers count from the end.
  std::vector<std::int64_t> layers, heads, rows;
  std::vector<Statistic> statistics = {Statistic::lse, Statistic::entropy, Statistic::column_sum, Statistic::weights,
                                       Statistic::top};
  std::int64_t top = 8;         // reads per row
  std::int64_t candidates = 8;  // tokens per row and layer of the lens
  // For Statistic::direct: of which token's logit, less that of another; left out, of each row's own first choice.
  std::optional<std::int32_t> token, against;
  std::vector<std::int32_t> groups;  // [tokens] each position's group, -1: none; for Statistic::groups
  bool resid = false;                // the residual of the chosen rows, at every layer's input and at the end
  int sequence = 0;                  // of the state

  bool has(Statistic statistic) const;
};

// The request with everything filled in and counted from 0, for a text of `tokens` tokens. Error{usage} names what is
// not there, Error{bad_input} a text without tokens or groups that do not fit.
ReadingRequest resolve(ReadingRequest request, const ModelConfig& config, std::int64_t tokens);

// Those of a resolved request, and those that they are made from.
std::vector<Statistic> statistics_read(const ReadingRequest& request);

// Bytes that the results and the work of reading take, beside the model's own (weights, cache, scratch): linear in the
// tokens, but for the weights of chosen rows, which are rows x tokens.
std::int64_t bytes_needed(const ReadingRequest& request, const ModelConfig& config, std::int64_t tokens);

}  // namespace regard
