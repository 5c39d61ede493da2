#include "intervention/row_readings.h"

#include <algorithm>
#include <cmath>

#include "attention/read.h"
#include "kernels/matmul.h"
#include "model/forward.h"
#include "reading/rollout.h"

namespace regard {
namespace {

constexpr std::int64_t kWeightRows = 64;  // of weights that live at a time

// [H][T]: the weights of the row, or the mean of all rows' weights.
Tensor<double, 2> weights_of(const QueriesTap& queries, const KeyValueCache& cache, std::int64_t layer,
                             std::span<const std::int32_t> heads, std::int64_t tokens,
                             std::optional<std::int64_t> row) {
  Tensor<double, 2> sum({std::ssize(heads), tokens});
  const double rows_in_all = row ? 1 : static_cast<double>(tokens);
  queries.each_pass(cache, layer, [&](const Problem& problem, View<const RowSoftmax, 2> softmax) {
    std::vector<std::int64_t> wanted;
    for (std::int64_t r = 0; r < std::ssize(problem.rows); ++r)
      if (!row || problem.rows[r].position == *row) wanted.push_back(r);
    for (std::size_t first = 0; first < wanted.size(); first += kWeightRows) {
      const auto some = std::span(wanted).subspan(first, std::min<std::size_t>(kWeightRows, wanted.size() - first));
      const Tensor<float, 3> p = weights(problem, softmax, some, heads, 0, tokens);
      for (std::int64_t r = 0; r < std::ssize(some); ++r)
        for (std::int64_t h = 0; h < std::ssize(heads); ++h)
          for (std::int64_t s = 0; s < tokens; ++s) sum(h, s) += static_cast<double>(p(r, h, s)) / rows_in_all;
    }
  });
  return sum;
}

}  // namespace

RowReadings read_row(const Model& model, std::span<const std::int32_t> ids, std::optional<std::int64_t> row) {
  const ModelConfig& c = model.config();
  // Where rows read to the left, later ones show nothing of this one.
  const std::int64_t T = row && c.causal ? *row + 1 : std::ssize(ids);
  const std::int64_t L = c.layers, H = c.heads, E = c.value_dim;
  State state(c, 1, std::ssize(ids));
  QueriesTap queries(model);
  feed(model, state, ids.first(static_cast<std::size_t>(T)), 0, {.tap = &queries, .on_rows = {}});

  RowReadings readings;
  for (auto* values : {&readings.attention, &readings.rollout, &readings.norm_weighted}) values->resize(ids.size());
  std::vector<std::int32_t> heads;
  for (std::int64_t h = 0; h < H; ++h) heads.push_back(static_cast<std::int32_t>(h));

  Tensor<float, 2> mixed({T, H * E}), moved({T, c.width});
  for (std::int64_t l = 0; l < L; ++l) {
    const Tensor<double, 2> p = weights_of(queries, state.cache, l, heads, T, row);
    for (std::int64_t s = 0; s < T; ++s) {
      for (std::int64_t h = 0; h < H; ++h) {
        readings.attention[s] += p(h, s) / static_cast<double>(L * H);
        const float* v = state.cache.value(0, l, s) + h / (H / c.kv_heads) * E;
        for (std::int64_t e = 0; e < E; ++e) mixed(s, h * E + e) = static_cast<float>(p(h, s)) * v[e];
      }
    }
    matmul(model.layers()[l].o.weight, mixed.view(), moved.view());
    std::vector<double> norm(static_cast<std::size_t>(T));
    double sum = 0;
    for (std::int64_t s = 0; s < T; ++s) {
      for (std::int64_t i = 0; i < c.width; ++i) norm[s] += static_cast<double>(moved(s, i)) * moved(s, i);
      sum += norm[s] = std::sqrt(norm[s]);
    }
    for (std::int64_t s = 0; s < T && sum > 0; ++s) readings.norm_weighted[s] += norm[s] / sum / static_cast<double>(L);
  }
  if (row) {
    const std::int64_t rows[] = {*row};
    const Tensor<float, 3> r = rollout(queries, state.cache, rows);
    for (std::int64_t s = 0; s < T; ++s) readings.rollout[s] = r(0, 0, s);
  } else {
    const Tensor<float, 2> r = rollout_of_mean(queries, state.cache);
    for (std::int64_t s = 0; s < T; ++s) readings.rollout[s] = r(0, s);
  }
  return readings;
}

}  // namespace regard
