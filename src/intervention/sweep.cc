#include "intervention/sweep.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "intervention/overlaid_keys.h"
#include "model/blocks.h"
#include "model/taps.h"

namespace regard {
namespace {

// Whether other rows of the same layer read what the edit writes.
bool is_read_by_others(EditSite site) {
  return site == EditSite::k || site == EditSite::v || site == EditSite::resid_pre;
}

// The first row that may read what lies at `position`.
std::int64_t first_reader(const ModelConfig& config, std::int64_t position) { return config.causal ? position : 0; }

// Rows in [0, end) that must pass in `layer` because of the edit itself: those it writes, and all that may read them.
void add_touched(const Cells& cells, const ModelConfig& config, std::int64_t layer, std::int64_t end,
                 std::vector<std::int64_t>& rows) {
  if (!std::binary_search(cells.layers.begin(), cells.layers.end(), layer)) return;
  if (is_read_by_others(cells.site)) {
    for (std::int64_t row = first_reader(config, cells.positions.front()); row < end; ++row) rows.push_back(row);
    return;
  }
  for (const std::int64_t row : cells.positions)
    if (row < end) rows.push_back(row);
}

std::int64_t first_layer(std::span<const Cells> edits) {
  std::int64_t first = INT64_MAX;
  for (const Cells& cells : edits) first = std::min(first, cells.layers.front());
  return first;
}

std::int64_t first_row(std::span<const Cells> edits) {
  std::int64_t first = INT64_MAX;
  for (const Cells& cells : edits) first = std::min(first, cells.positions.front());
  return first;
}

}  // namespace

// What-ifs on their way through the layers together.
class Sweep::Batch {
 public:
  Batch(Sweep& sweep, std::vector<std::vector<Cells>> edits)
      : sweep_(sweep), config_(sweep.model_.config()), edits_(std::move(edits)), tap_(config_, spans(edits_)) {
    changed_.assign(edits_.size(), end());
  }

  // The metric of each.
  std::vector<double> run() {
    OverlaidKeys keys(sweep_.clean_, std::ssize(edits_), end());
    Blocks blocks(sweep_.model_, sweep_.state_, keys, &tap_);
    std::int64_t layer = config_.layers;
    for (const auto& edits : edits_) layer = std::min(layer, first_layer(edits));
    for (; layer < config_.layers; ++layer) {
      gather(layer);
      if (stream_.rows.empty()) continue;
      if (layer + 1 < config_.layers) {
        blocks.run(layer, stream_);
        compare(layer);
      } else if (sweep_.measure_.of_all_rows()) {
        blocks.run(layer, stream_);
      } else {
        std::vector<std::int64_t> kept;  // the metric's rows
        for (std::int64_t r = 0; r < std::ssize(stream_.rows); ++r)
          if (stream_.rows[r].position == sweep_.row_) kept.push_back(r);
        blocks.run(layer, stream_, &kept);
      }
    }
    std::vector<double> values(edits_.size(), sweep_.measure_.base());
    if (sweep_.measure_.of_all_rows()) {
      measure_texts(values);
    } else if (!stream_.rows.empty()) {
      const std::vector<double> measured = sweep_.measure_.of(stream_.resid);
      for (std::size_t r = 0; r < stream_.rows.size(); ++r) values[stream_.rows[r].sequence] = measured[r];
    }
    return values;
  }

  const std::vector<std::vector<Receipt>>& receipts() const { return tap_.receipts(); }

 private:
  static std::vector<std::span<const Cells>> spans(const std::vector<std::vector<Cells>>& edits) {
    return {edits.begin(), edits.end()};
  }
  std::int64_t end() const { return sweep_.end_; }

  // The rows that must pass in `layer`: changed ones from the layer before, others from the clean run.
  void gather(std::int64_t layer) {
    const View<const float, 3> clean = sweep_.clean_.at(Site::resid_pre, layer);
    const std::int64_t C = config_.width;
    std::vector<Row> rows;
    std::vector<const float*> from;
    std::size_t old = 0;  // rows of the stream lie by what-if, then by position
    std::vector<std::int64_t> touched;
    for (std::size_t w = 0; w < edits_.size(); ++w) {
      touched.clear();
      for (const Cells& cells : edits_[w]) add_touched(cells, config_, layer, end(), touched);
      for (std::int64_t row = changed_[w]; row < end(); ++row) touched.push_back(row);
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      for (const std::int64_t position : touched) {
        while (old < stream_.rows.size() && before(stream_.rows[old], w, position)) ++old;
        const bool passed = old < stream_.rows.size() && stream_.rows[old].sequence == static_cast<std::int64_t>(w) &&
                            stream_.rows[old].position == position;
        rows.push_back({0, static_cast<std::int32_t>(w), position});
        from.push_back(passed ? &stream_.resid(static_cast<std::int64_t>(old), 0) : &clean(position, 0, 0));
      }
    }
    spare_.resize(rows.size() * static_cast<std::size_t>(C));
    for (std::size_t r = 0; r < rows.size(); ++r) std::copy_n(from[r], C, spare_.data() + r * C);
    std::swap(memory_, spare_);
    stream_.resid = {memory_.data(), {std::ssize(rows), C}};
    stream_.rows = std::move(rows);
  }

  static bool before(const Row& row, std::size_t what_if, std::int64_t position) {
    return std::pair<std::int64_t, std::int64_t>(row.sequence, row.position) <
           std::pair<std::int64_t, std::int64_t>(what_if, position);
  }

  // The metric of each what-if that has rows left: the clean run's text with them laid over it.
  void measure_texts(std::vector<double>& values) {
    const View<const float, 2> clean = sweep_.clean_.final_resid();
    Tensor<float, 2> text(clean.shape);
    for (std::size_t begin = 0, next = 0; begin < stream_.rows.size(); begin = next) {
      std::copy_n(clean.data, clean.size(), text.data());
      const std::int32_t what_if = stream_.rows[begin].sequence;
      for (; next < stream_.rows.size() && stream_.rows[next].sequence == what_if; ++next)
        std::copy_n(&stream_.resid(static_cast<std::int64_t>(next), 0), config_.width,
                    &text(stream_.rows[next].position, 0));
      values[what_if] = sweep_.measure_.of_text(std::as_const(text).view());
    }
  }

  // The first row of each what-if that no longer has the clean run's bits, or that reads one.
  void compare(std::int64_t layer) {
    const View<const float, 3> clean = sweep_.clean_.at(Site::resid_pre, layer + 1);
    std::fill(changed_.begin(), changed_.end(), end());
    const std::size_t bytes = static_cast<std::size_t>(config_.width) * sizeof(float);
    for (std::int64_t r = std::ssize(stream_.rows) - 1; r >= 0; --r) {
      const Row& row = stream_.rows[r];
      if (std::memcmp(&stream_.resid(r, 0), &clean(row.position, 0, 0), bytes) != 0)
        changed_[row.sequence] = first_reader(config_, row.position);
    }
  }

  Sweep& sweep_;
  const ModelConfig& config_;
  std::vector<std::vector<Cells>> edits_;
  EditTap tap_;
  std::vector<std::int64_t> changed_;  // [what-ifs] first row that must pass, as some residual differs at the input
  Stream stream_;
  std::vector<float> memory_, spare_;  // of the stream, and of the one before
};

Sweep::Sweep(const Model& model, const RunRecord& clean, const Measure& measure, const SweepOptions& options)
    : model_(model),
      clean_(clean),
      measure_(measure),
      options_(options),
      row_(options.row < 0 ? options.row + clean.tokens() : options.row),
      end_(model.config().causal && !measure.of_all_rows() ? row_ + 1 : clean.tokens()),
      state_(model.config(), 1, clean.tokens()) {}

void Sweep::run(std::int64_t count, const std::function<std::vector<Cells>(std::int64_t)>& cells,
                const std::function<void(WhatIfResult)>& done) {
  // Neighbours in a batch start at the same layer, so that all its products are full.
  struct Place {
    std::int64_t layer, row, index;
  };
  std::vector<Place> order;
  order.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::vector<Cells> edits = cells(i);
    order.push_back({first_layer(edits), first_row(edits), i});
  }
  std::sort(order.begin(), order.end(), [](const Place& a, const Place& b) {
    return std::tie(a.layer, a.row, a.index) < std::tie(b.layer, b.row, b.index);
  });

  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    std::vector<std::vector<Cells>> edits;
    for (std::int64_t rows = 0; end < order.size(); ++end) {
      rows += std::max<std::int64_t>(1, end_ - first_reader(model_.config(), order[end].row));
      if (end > first && rows > options_.batch_rows) break;
      edits.push_back(cells(order[end].index));
    }
    Batch batch(*this, std::move(edits));
    const std::vector<double> values = batch.run();
    for (std::size_t i = first; i < end; ++i) done({order[i].index, values[i - first], batch.receipts()[i - first]});
    if (options_.progress != nullptr)
      options_.progress->at("what-ifs", static_cast<std::int64_t>(end), std::ssize(order));
  }
}

std::int64_t Sweep::bytes_for(const ModelConfig& config, std::int64_t tokens, std::int64_t rows) {
  // Two copies of the residual, and at most a table of keys and of values for each row.
  const std::int64_t per_row = 2 * config.width * static_cast<std::int64_t>(sizeof(float)) +
                               2 * tokens * static_cast<std::int64_t>(sizeof(void*));
  return scratch_bytes(config, rows) + rows * per_row;
}

WholeRun whole_run(const Model& model, std::span<const std::int32_t> ids, std::span<const Cells> cells,
                   const Measure& measure, std::int64_t row, Tap* look, Progress* progress) {
  EditTap edits(model.config(), {cells});
  Taps taps(look != nullptr ? std::vector<Tap*>{&edits, look} : std::vector<Tap*>{&edits});
  State state(model.config(), 1, std::ssize(ids));
  WholeRun run{{}, Tensor<float, 2>({1, model.config().width})};
  Tensor<float, 2> text;  // where the metric is about all rows
  if (measure.of_all_rows()) text = Tensor<float, 2>({std::ssize(ids), model.config().width});
  feed(model, state, ids, 0,
       {.tap = &taps, .progress = progress, .on_rows = [&](std::int64_t first, View<const float, 2> rows) {
          if (row >= first && row < first + rows.shape[0])
            std::copy_n(&rows(row - first, 0), rows.shape[1], run.resid.data());
          if (text.size() > 0) std::copy_n(rows.data, rows.size(), &text(first, 0));
        }});
  const double value =
      text.size() > 0 ? measure.of_text(std::as_const(text).view()) : measure.of(std::as_const(run.resid).view())[0];
  run.result = {0, value, edits.receipts()[0]};
  return run;
}

}  // namespace regard
