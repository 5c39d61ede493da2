#include "report/row_summary.h"

#include <algorithm>

namespace regard {

RowSummary summarise_row(View<const float, 3> weights, std::optional<std::int64_t> sink) {
  const auto [layers, heads, keys] = weights.shape;
  RowSummary summary;
  summary.share.assign(static_cast<std::size_t>(keys), 0);
  double sum = 0, sink_sum = 0;
  for (std::int64_t l = 0; l < layers; ++l) {
    for (std::int64_t h = 0; h < heads; ++h) {
      HeadRead read{.layer = l, .head = h};
      for (std::int64_t k = 0; k < keys; ++k) {
        const float weight = weights(l, h, k);
        if (sink == k) {
          read.sink = weight;
          sink_sum += weight;
          continue;
        }
        summary.share[static_cast<std::size_t>(k)] += weight;
        sum += weight;
        if (weight > read.weight) {
          read.weight = weight;
          read.key = k;
        }
      }
      summary.heads.push_back(read);
    }
  }
  if (sum > 0)
    for (double& share : summary.share) share /= sum;
  if (!summary.heads.empty()) summary.sink_share = sink_sum / static_cast<double>(summary.heads.size());

  summary.strongest = summary.heads;
  std::erase_if(summary.strongest, [](const HeadRead& read) { return read.key < 0; });
  std::stable_sort(summary.strongest.begin(), summary.strongest.end(),
                   [](const HeadRead& a, const HeadRead& b) { return a.weight > b.weight; });
  return summary;
}

}  // namespace regard
