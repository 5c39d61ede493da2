#include "intervention/pattern_distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace regard {

// Compares one layer's tiles with the clean run's weights, worked out again in float64 from its queries and keys.
class PatternDistanceTap::Comparer final : public Reader {
 public:
  Comparer(const ModelConfig& config, const RunRecord& clean, std::int64_t layer)
      : config_(config),
        clean_(clean),
        layer_(layer),
        lanes_(static_cast<std::size_t>(clean.tokens() * config.heads)) {}

  void compare(const Cells& cells) {
    for (const std::int64_t row : cells.positions)
      for (const std::int64_t head : cells.heads) lanes_[row * config_.heads + head].wanted = true;
  }
  void begin(const Problem& problem, int) override {
    rows_.clear();
    for (const QueryRow& row : problem.rows) rows_.push_back(row.position);
  }
  void tile(const WeightTile& tile, int) override {
    for (int i = 0; i < tile.lanes; ++i) {
      const std::int64_t row = rows_[tile.row[i]], head = tile.head[i];
      Lane& lane = lanes_[row * config_.heads + head];
      if (!lane.wanted) continue;
      if (!lane.started) start(lane, row, head);
      for (std::int64_t j = 0; j < tile.keys; ++j) {
        const std::int64_t key = tile.key_begin + j;
        if (key < first_visible(config_, layer_, row) || key > row) continue;
        const double p = std::exp(score(row, head, key) - lane.max) / lane.sum, q = tile.weight[j * tile.stride + i];
        // log(p / m), m = (p + q) / 2, is -log((1 + q / p) / 2): exactly 0 where both are equal.
        if (p > 0) lane.jsd -= p * std::log((1 + q / p) / 2) / 2;
        if (q > 0) lane.jsd -= q * std::log((1 + p / q) / 2) / 2;
        lane.left -= p;
      }
    }
  }

  void add_to(PatternDistance& result) const {
    for (std::int64_t row = 0; row < clean_.tokens(); ++row) {
      for (std::int64_t head = 0; head < config_.heads; ++head) {
        const Lane& lane = lanes_[row * config_.heads + head];
        if (!lane.wanted) continue;
        // What no tile showed is not read at all in the edited run.
        const double unseen = std::max(0.0, lane.left);
        const double jsd = std::clamp(lane.jsd + unseen * std::log(2.0) / 2, 0.0, std::log(2.0));
        result.mean += jsd;
        result.max = std::max(result.max, jsd);
        ++result.rows;
      }
    }
  }

 private:
  struct Lane {
    bool wanted = false, started = false;
    double max = 0, sum = 0, jsd = 0;
    double left = 1;  // of the clean weights, what no tile has shown yet
  };

  double score(std::int64_t row, std::int64_t head, std::int64_t key) const {
    const auto q = clean_.at(Site::rot_q, layer_), k = clean_.at(Site::rot_k, layer_);
    const std::int64_t kv_head = head / (config_.heads / config_.kv_heads);
    double s = 0;
    for (std::int64_t d = 0; d < config_.head_dim; ++d)
      s += static_cast<double>(q(row, head, d)) * static_cast<double>(k(key, kv_head, d));
    s *= config_.attention_scale;
    return config_.attention_softcap > 0 ? config_.attention_softcap * std::tanh(s / config_.attention_softcap) : s;
  }

  void start(Lane& lane, std::int64_t row, std::int64_t head) const {
    const std::int64_t first = first_visible(config_, layer_, row);
    lane.max = -std::numeric_limits<double>::infinity();
    for (std::int64_t key = first; key <= row; ++key) lane.max = std::max(lane.max, score(row, head, key));
    for (std::int64_t key = first; key <= row; ++key) lane.sum += std::exp(score(row, head, key) - lane.max);
    lane.started = true;
  }

  const ModelConfig& config_;
  const RunRecord& clean_;
  std::int64_t layer_;
  std::vector<Lane> lanes_;         // [T, H]
  std::vector<std::int64_t> rows_;  // of the pass: position
};

PatternDistanceTap::PatternDistanceTap(const ModelConfig& config, const RunRecord& clean, std::span<const Cells> edits)
    : layers_(static_cast<std::size_t>(config.layers)) {
  for (const Cells& cells : edits) {
    if (!about_weights(cells.site)) continue;
    for (const std::int64_t layer : cells.layers) {
      if (!layers_[layer]) layers_[layer] = std::make_unique<Comparer>(config, clean, layer);
      layers_[layer]->compare(cells);
    }
  }
}

PatternDistanceTap::~PatternDistanceTap() = default;

std::vector<Reader*> PatternDistanceTap::readers(std::int64_t layer, std::span<const Row>) {
  return layers_[layer] ? std::vector<Reader*>{layers_[layer].get()} : std::vector<Reader*>{};
}

PatternDistance PatternDistanceTap::result() const {
  PatternDistance result;
  for (const auto& layer : layers_)
    if (layer) layer->add_to(result);
  if (result.rows > 0) result.mean /= static_cast<double>(result.rows);
  return result;
}

}  // namespace regard
