#include "intervention/pattern_distance.h"

#include <algorithm>
#include <cmath>

#include "intervention/metric.h"

namespace regard {

// Asked as a reader, because a reader is told the problem; it needs no tiles.
class PatternDistanceTap::Comparer final : public Reader {
 public:
  Comparer(const ModelConfig& config, const RunRecord& clean, std::span<const Cells> edits, EditTap& maker)
      : config_(config), clean_(clean), edits_(edits), maker_(maker) {}

  bool aim(std::int64_t layer, std::span<const Row> rows) {
    layer_ = layer;
    rows_ = rows;
    return std::any_of(edits_.begin(), edits_.end(), [&](const Cells& cells) { return about(cells, layer); });
  }

  void begin(const Problem& problem, int) override {
    // Rows whose pattern is substituted, by head; the others are as the problem's edges make them.
    if (maker_.wants(Site::pattern, layer_))
      maker_.substitutes(layer_, rows_, problem, false, [&](const Substitute& made) { compare(problem, made); });
    for (const Cells& cells : edits_) {
      if (cells.site != EditSite::edge || !about(cells, layer_)) continue;
      std::vector<std::int64_t> rows;
      for (std::size_t r = 0; r < rows_.size(); ++r)
        if (std::binary_search(cells.positions.begin(), cells.positions.end(), rows_[r].position))
          rows.push_back(static_cast<std::int64_t>(r));
      if (rows.empty()) continue;
      for (const std::int64_t head : cells.heads)
        compare(problem, unchanged(problem, static_cast<std::int32_t>(head), rows));
    }
  }
  void tile(const WeightTile&, int) override {}

  PatternDistance result() const {
    PatternDistance result{sum_, max_, count_};
    if (count_ > 0) result.mean /= static_cast<double>(count_);
    return result;
  }

 private:
  static bool about(const Cells& cells, std::int64_t layer) {
    return about_weights(cells.site) && std::binary_search(cells.layers.begin(), cells.layers.end(), layer);
  }

  void compare(const Problem& problem, const Substitute& made) {
    constexpr std::size_t kRows = 64;  // rows of weights that live at a time
    Problem clean = problem;
    clean.mask.edges = {};
    const std::size_t D = static_cast<std::size_t>(config_.head_dim);
    for (std::size_t first = 0; first < made.rows.size(); first += kRows) {
      const std::size_t end = std::min(first + kRows, made.rows.size());
      Substitute part = made;
      part.rows.assign(made.rows.begin() + static_cast<std::ptrdiff_t>(first),
                       made.rows.begin() + static_cast<std::ptrdiff_t>(end));
      part.q.assign(made.q.begin() + static_cast<std::ptrdiff_t>(first * D),
                    made.q.begin() + static_cast<std::ptrdiff_t>(end * D));
      const std::int64_t length = problem.sequences[problem.rows[part.rows[0]].sequence].length;
      const Tensor<float, 3> q = weights(problem, part);
      const Tensor<float, 3> p = weights(clean, from_run(clean_, config_, layer_, made.head, part.rows, rows_, length));
      for (std::size_t i = 0; i < part.rows.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const double jsd = jensen_shannon({&p(at, 0, 0), static_cast<std::size_t>(p.shape()[2])},
                                          {&q(at, 0, 0), static_cast<std::size_t>(q.shape()[2])});
        sum_ += jsd;
        max_ = std::max(max_, jsd);
        ++count_;
      }
    }
  }

  const ModelConfig& config_;
  const RunRecord& clean_;
  std::span<const Cells> edits_;
  EditTap& maker_;
  std::int64_t layer_ = 0;
  std::span<const Row> rows_;
  double sum_ = 0, max_ = 0;
  std::int64_t count_ = 0;
};

PatternDistanceTap::PatternDistanceTap(const ModelConfig& config, const RunRecord& clean, std::span<const Cells> edits,
                                       EditTap& maker)
    : comparer_(std::make_unique<Comparer>(config, clean, edits, maker)) {}

PatternDistanceTap::~PatternDistanceTap() = default;

std::vector<Reader*> PatternDistanceTap::readers(std::int64_t layer, std::span<const Row> rows) {
  return comparer_->aim(layer, rows) ? std::vector<Reader*>{comparer_.get()} : std::vector<Reader*>{};
}

PatternDistance PatternDistanceTap::result() const { return comparer_->result(); }

}  // namespace regard
