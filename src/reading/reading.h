#pragma once
// What was read: the result of a ReadingTap. Axes: l = chosen layers, h = chosen heads, row = chosen rows, t and s =
// every position of the text. A statistic that was not asked for is empty.

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "reading/direct_effects.h"
#include "reading/flow.h"
#include "reading/lens.h"
#include "reading/request.h"
#include "tensor/buffer.h"

namespace regard {

inline constexpr float kNotRead = std::numeric_limits<float>::quiet_NaN();

struct Reading {
  ReadingRequest request;  // resolved: layers, heads and rows as they were read
  std::int64_t tokens = 0;

  std::map<Statistic, Tensor<float, 3>> per_row;  // [l][h][t]; NaN for rows that did not pass
  // [l][h] the mean over rows, of those per-row statistics for which a mean says something: all but lse. Only rows that
  // have such a key count (previous: not the first; duplicate, induction: those with an earlier occurrence); NaN if
  // there is none.
  std::map<Statistic, Tensor<float, 2>> mean;
  Tensor<float, 3> column_sum;                // [l][h][s]
  std::vector<std::int64_t> distance_edges;   // bin b: distances [edges[b], edges[b + 1])
  Tensor<float, 3> distances;                 // [l][h][bin], summed over rows
  Tensor<float, 2> copying;                   // [l][h]; NaN where no row has a next token
  Tensor<float, 3> value_norm;                // [l][h][s]
  Tensor<float, 2> mixing;                    // [l][t]; NaN for rows that did not pass
  Tensor<float, 3> norm_weighted_column_sum;  // [l][h][s]
  Tensor<float, 4> weights;                   // [l][h][row][s]
  Tensor<float, 4> norm_weighted;             // [l][h][row][s]
  Tensor<float, 4> top_weight;                // [l][h][row][k] falling; 0 where a row reads fewer keys
  Tensor<std::int32_t, 4> top_key;            // [l][h][row][k]; -1 there
  Tensor<float, 4> group_mass;                // [l][h][row][group]
  Tensor<float, 3> rollout;                   // [layers of the model + 1][row][s]
  Flow flow;
  std::vector<std::vector<LensRow>> lens;  // [layers of the model + 1][row]
  DirectEffects direct;                    // of all layers and heads of the model
  std::vector<std::int32_t> direct_token;  // [row] whose logit
  Tensor<float, 3> resid;                  // [layers of the model + 1][row][C]: resid_pre of each, last resid_post
};

}  // namespace regard
