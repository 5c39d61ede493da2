#include "reading/sink.h"

#include <algorithm>
#include <vector>

namespace regard {

std::optional<AttentionSink> find_sink(View<const float, 3> column_sum, const SinkCriteria& criteria) {
  const std::int64_t T = column_sum.shape[2];
  const double heads = static_cast<double>(column_sum.shape[0] * column_sum.shape[1]);
  std::vector<double> even(static_cast<std::size_t>(T) + 1);  // what position k gets of rows that read evenly
  for (std::int64_t i = T - 1; i >= 0; --i) even[i] = even[i + 1] + 1.0 / static_cast<double>(i + 1);
  std::optional<AttentionSink> best;
  for (std::int64_t k = 0; k <= T / 2 && k < T; ++k) {
    const double rows = static_cast<double>(T - k), threshold = std::max(criteria.epsilon, 2 * even[k] / rows);
    double users = 0, mass = 0;
    for (std::int64_t l = 0; l < column_sum.shape[0]; ++l) {
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
