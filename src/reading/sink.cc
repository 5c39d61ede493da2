#include "reading/sink.h"

#include <algorithm>
#include <map>
#include <vector>

#include "model/visible_keys.h"

namespace regard {
namespace {

// Of each position of a text, in layers of one kind.
struct EvenReading {
  std::vector<double> rows;    // that see it
  std::vector<double> weight;  // that it gets of them if all read evenly
};

EvenReading even_reading(const ModelConfig& config, std::int64_t layer, std::int64_t tokens) {
  // Running sums over rows: what each row gives to a key, if it gives evenly.
  std::vector<double> given(static_cast<std::size_t>(tokens) + 1);
  for (std::int64_t row = 0; row < tokens; ++row) {
    const KeyRange keys = visible_keys(config, layer, row, tokens);
    given[row + 1] = given[row] + 1.0 / static_cast<double>(keys.end - keys.begin);
  }
  EvenReading even;
  for (std::int64_t key = 0; key < tokens; ++key) {
    const KeyRange rows = rows_that_see(config, layer, key, tokens);
    even.rows.push_back(static_cast<double>(rows.end - rows.begin));
    even.weight.push_back(given[rows.end] - given[rows.begin]);
  }
  return even;
}

}  // namespace

std::optional<AttentionSink> find_sink(View<const float, 3> column_sum, const ModelConfig& config,
                                       std::span<const std::int64_t> layers, const SinkCriteria& criteria) {
  const std::int64_t T = column_sum.shape[2];
  const double heads = static_cast<double>(column_sum.shape[0] * column_sum.shape[1]);
  std::map<std::int64_t, EvenReading> by_window;  // which is all in which layers differ
  for (const std::int64_t layer : layers)
    if (!by_window.contains(config.window[layer]))
      by_window.emplace(config.window[layer], even_reading(config, layer, T));
  std::optional<AttentionSink> best;
  for (std::int64_t k = 0; k < (config.causal ? std::min(T, T / 2 + 1) : T); ++k) {
    double users = 0, mass = 0;
    for (std::int64_t l = 0; l < column_sum.shape[0]; ++l) {
      const EvenReading& even = by_window.at(config.window[layers[l]]);
      const double rows = even.rows[k], threshold = std::max(criteria.epsilon, 2 * even.weight[k] / rows);
      for (std::int64_t h = 0; h < column_sum.shape[1]; ++h) {
        const double alpha = column_sum(l, h, k) / rows;
        users += alpha > threshold;
        mass += alpha;
      }
    }
    if (users > 0 && users / heads >= criteria.least_share && (!best || users / heads > best->share))
      best = AttentionSink{k, users / heads, mass / heads};
  }
  return best;
}

}  // namespace regard
