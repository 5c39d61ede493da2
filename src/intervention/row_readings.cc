#include "intervention/row_readings.h"

#include <cmath>

#include "attention/read.h"
#include "kernels/matmul.h"
#include "model/forward.h"
#include "reading/rollout.h"

namespace regard {

RowReadings read_row(const Model& model, std::span<const std::int32_t> ids, std::int64_t row) {
  const ModelConfig& c = model.config();
  const std::int64_t T = row + 1, L = c.layers, H = c.heads, E = c.value_dim;  // later rows show nothing of this one
  State state(c, 1, std::ssize(ids));
  QueriesTap queries(model);
  feed(model, state, ids.first(static_cast<std::size_t>(T)), 0, {.tap = &queries, .on_rows = {}});

  RowReadings readings;
  for (auto* values : {&readings.attention, &readings.rollout, &readings.norm_weighted}) values->resize(ids.size());
  std::vector<std::int32_t> heads;
  for (std::int64_t h = 0; h < H; ++h) heads.push_back(static_cast<std::int32_t>(h));

  Tensor<float, 2> mixed({T, H * E}), moved({T, c.width});
  for (std::int64_t l = 0; l < L; ++l) {
    queries.each_pass(state.cache, l, [&](const Problem& problem, View<const RowSoftmax, 2> softmax) {
      for (std::int64_t r = 0; r < std::ssize(problem.rows); ++r) {
        if (problem.rows[r].position != row) continue;
        const std::int64_t rows[] = {r};
        const Tensor<float, 3> p = weights(problem, softmax, rows, heads, 0, T);
        for (std::int64_t s = 0; s < T; ++s) {
          for (std::int64_t h = 0; h < H; ++h) {
            readings.attention[s] += static_cast<double>(p(0, h, s)) / static_cast<double>(L * H);
            const float* v = state.cache.value(0, l, s) + h / (H / c.kv_heads) * E;
            for (std::int64_t e = 0; e < E; ++e) mixed(s, h * E + e) = p(0, h, s) * v[e];
          }
        }
      }
    });
    matmul(model.layers()[l].o.weight, mixed.view(), moved.view());
    std::vector<double> norm(static_cast<std::size_t>(T));
    double sum = 0;
    for (std::int64_t s = 0; s < T; ++s) {
      for (std::int64_t i = 0; i < c.width; ++i) norm[s] += static_cast<double>(moved(s, i)) * moved(s, i);
      sum += norm[s] = std::sqrt(norm[s]);
    }
    for (std::int64_t s = 0; s < T && sum > 0; ++s) readings.norm_weighted[s] += norm[s] / sum / static_cast<double>(L);
  }
  const std::int64_t rows[] = {row};
  const Tensor<float, 3> r = rollout(queries, state.cache, rows);
  for (std::int64_t s = 0; s < T; ++s) readings.rollout[s] = r(0, 0, s);
  return readings;
}

}  // namespace regard
