#include "reading/rollout.h"

#include <algorithm>
#include <cmath>

#include "parallel/parallel_for.h"
#include "reading/tile_kernels.h"
#include "tensor/error.h"

namespace regard {

// What one layer's passes were made of.
class QueriesTap::Keeper final : public Reader {
 public:
  struct Pass {
    Problem problem;  // its spans and views point at what follows; sequences are filled in when it is used
    Tensor<float, 3> q;
    std::vector<QueryRow> rows;
    std::vector<EdgeEdit> edges;
    Tensor<RowSoftmax, 2> softmax;
  };

  explicit Keeper(std::int32_t sequence) : sequence_(sequence) {}

  void begin(const Problem& problem, int) override {
    if (problem.mask.bias.data != nullptr)
      throw Error(ErrorCode::unsupported, "rollout of attention with a bias on its scores is not known");
    kept_.assign(problem.rows.size(), -1);
    auto pass = std::make_unique<Pass>();
    for (std::size_t r = 0; r < problem.rows.size(); ++r) {
      if (problem.rows[r].sequence != sequence_) continue;
      kept_[r] = std::ssize(pass->rows);
      pass->rows.push_back({0, problem.rows[r].segment, problem.rows[r].position});
    }
    const std::int64_t H = problem.q.shape[1], D = problem.q.shape[2];
    pass->q = Tensor<float, 3>({std::ssize(pass->rows), H, D});
    pass->softmax = Tensor<RowSoftmax, 2>({std::ssize(pass->rows), H});
    std::fill_n(pass->softmax.data(), pass->softmax.size(), RowSoftmax{});
    for (std::size_t r = 0; r < kept_.size(); ++r)
      for (std::int64_t h = 0; kept_[r] >= 0 && h < H; ++h)
        for (std::int64_t d = 0; d < D; ++d) pass->q(kept_[r], h, d) = problem.q(r, h, d);
    for (EdgeEdit edge : problem.mask.edges) {
      if (kept_[edge.row] < 0) continue;
      edge.row = kept_[edge.row];
      pass->edges.push_back(edge);
    }
    pass->problem = problem;
    pass->problem.q = pass->q.view();
    pass->problem.rows = pass->rows;
    pass->problem.mask.edges = pass->edges;
    pass->problem.sequences = {};
    passes_.push_back(std::move(pass));
  }

  void tile(const WeightTile& tile, int) override {
    if (tile.sequence != sequence_) return;
    for (int lane = 0; lane < tile.lanes; ++lane)
      passes_.back()->softmax(kept_[tile.row[lane]], tile.head[lane]) = tile.softmax[lane];
  }

  const std::vector<std::unique_ptr<Pass>>& passes() const { return passes_; }

 private:
  std::int32_t sequence_;
  std::vector<std::int64_t> kept_;  // of the pass: index among the rows that are kept, -1
  std::vector<std::unique_ptr<Pass>> passes_;
};

QueriesTap::QueriesTap(const Model& model, int sequence) : sequence_(sequence) {
  for (std::int64_t l = 0; l < model.config().layers; ++l) keepers_.push_back(std::make_unique<Keeper>(sequence));
}

QueriesTap::~QueriesTap() = default;

std::vector<Reader*> QueriesTap::readers(std::int64_t layer, std::span<const Row> rows) {
  const bool ours = std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.sequence == sequence_; });
  return ours ? std::vector<Reader*>{keepers_[layer].get()} : std::vector<Reader*>{};
}

std::int64_t QueriesTap::bytes_needed(const ModelConfig& config, std::int64_t tokens) {
  const std::int64_t per_head =
      config.head_dim * static_cast<std::int64_t>(sizeof(float)) + static_cast<std::int64_t>(sizeof(RowSoftmax));
  return tokens * config.layers *
         (config.heads * per_head + static_cast<std::int64_t>(sizeof(QueryRow) + sizeof(std::int64_t)));
}

void QueriesTap::each_pass(const KeyValueCache& cache, std::int64_t layer,
                           const std::function<void(const Problem&, View<const RowSoftmax, 2>)>& use) const {
  const Sequence keys = cache.view(sequence_, layer, cache.length(sequence_));
  for (const auto& pass : keepers_[layer]->passes()) {
    Problem problem = pass->problem;
    problem.sequences = {&keys, 1};
    use(problem, std::as_const(pass->softmax).view());
  }
}

std::int64_t QueriesTap::tokens() const {
  std::int64_t next = 0;
  for (const auto& pass : keepers_.back()->passes())
    for (const QueryRow& row : pass->rows)
      if (row.position == next) ++next;
  return next;
}

namespace {

// sum_i r_i mean_h P_h,i -> one number per key, exact whatever the order.
class WeightedRows final : public Reader {
 public:
  explicit WeightedRows(const std::vector<double>& r) : r_(r), total_(r.size()) {}

  void begin(const Problem& problem, int threads) override {
    rows_ = problem.rows;
    heads_ = static_cast<double>(problem.q.shape[1]);
    parts_.assign(static_cast<std::size_t>(threads), std::vector<std::int64_t>(r_.size()));
  }
  void tile(const WeightTile& tile, int thread) override {
    for (int first = 0; first < tile.lanes; first += kLaneGroup) {
      const LaneGroup lanes = {tile, first, std::min(tile.lanes - first, kLaneGroup)};
      double factor[kLaneGroup] = {};
      bool any = false;
      for (int i = 0; i < lanes.count; ++i) {
        factor[i] = r_[rows_[tile.row[first + i]].position] / heads_;
        any = any || factor[i] != 0;
      }
      if (any) tile_weighted_sums(lanes, factor, parts_[thread].data() + tile.key_begin);
    }
  }
  void finish() override {
    for (const std::vector<std::int64_t>& part : parts_)
      for (std::size_t j = 0; j < total_.size(); ++j) total_[j] += part[j];
  }
  double at(std::int64_t key) const { return std::ldexp(static_cast<double>(total_[key]), -kProductBits); }

 private:
  const std::vector<double>& r_;
  std::span<const QueryRow> rows_;
  double heads_ = 1;
  std::vector<std::vector<std::int64_t>> parts_;
  std::vector<std::int64_t> total_;
};

// r_l of every chosen row, from the top down: readers() are shown the weights of a layer, then down() takes it.
class Shares {
 public:
  Shares(std::int64_t layers, std::int64_t tokens, std::span<const std::int64_t> rows)
      : result_({layers + 1, std::ssize(rows), tokens}) {
    for (const std::int64_t row : rows) {
      if (row < 0 || row >= tokens)
        throw Error(ErrorCode::usage, fmt::format("there is no row {}", row), fmt::format("there are {} rows", tokens));
      r_.emplace_back(static_cast<std::size_t>(tokens))[static_cast<std::size_t>(row)] = 1;
    }
    keep(layers);
  }
  // Of one row that is the mean of all.
  Shares(std::int64_t layers, std::int64_t tokens) : result_({layers + 1, 1, tokens}) {
    r_.emplace_back(static_cast<std::size_t>(tokens), 1.0 / static_cast<double>(tokens));
    keep(layers);
  }
  std::vector<Reader*> readers() {
    sums_.clear();
    for (const std::vector<double>& r : r_) sums_.emplace_back(r);
    std::vector<Reader*> readers;
    for (WeightedRows& sum : sums_) readers.push_back(&sum);
    return readers;
  }
  void down(std::int64_t layer) {
    for (std::size_t i = 0; i < r_.size(); ++i)
      for (std::size_t j = 0; j < r_[i].size(); ++j)
        r_[i][j] = (r_[i][j] + sums_[i].at(static_cast<std::int64_t>(j))) / 2;
    keep(layer);
  }
  Tensor<float, 3> take() { return std::move(result_); }

 private:
  void keep(std::int64_t layer) {
    for (std::size_t i = 0; i < r_.size(); ++i)
      for (std::size_t j = 0; j < r_[i].size(); ++j) result_(layer, i, j) = static_cast<float>(r_[i][j]);
  }

  Tensor<float, 3> result_;
  std::vector<std::vector<double>> r_;  // [row][T]
  std::vector<WeightedRows> sums_;
};

}  // namespace

namespace {

Tensor<float, 3> rolled(const QueriesTap& queries, const KeyValueCache& cache, Shares shares) {
  if (const std::int64_t T = cache.length(queries.sequence()); queries.tokens() != T)
    throw Error(ErrorCode::usage,
                fmt::format("rollout needs the queries of all {} rows, {} were kept", T, queries.tokens()),
                "attach the tap before the first row");
  for (std::int64_t l = queries.layers() - 1; l >= 0; --l) {
    const std::vector<Reader*> readers = shares.readers();
    queries.each_pass(
        cache, l, [&](const Problem& problem, View<const RowSoftmax, 2> softmax) { read(problem, softmax, readers); });
    shares.down(l);
  }
  return shares.take();
}

}  // namespace

Tensor<float, 3> rollout(const QueriesTap& queries, const KeyValueCache& cache, std::span<const std::int64_t> rows) {
  return rolled(queries, cache, Shares(queries.layers(), cache.length(queries.sequence()), rows));
}

Tensor<float, 2> rollout_of_mean(const QueriesTap& queries, const KeyValueCache& cache) {
  const std::int64_t T = cache.length(queries.sequence());
  const Tensor<float, 3> all = rolled(queries, cache, Shares(queries.layers(), T));
  Tensor<float, 2> one({all.shape()[0], T});
  std::copy_n(all.data(), all.size(), one.data());
  return one;
}

Tensor<float, 3> rollout(const Model& model, Replay& replay, std::int64_t tokens, std::span<const std::int64_t> rows) {
  Shares shares(model.config().layers, tokens, rows);
  replay.each_layer_down([&](std::int64_t) { return shares.readers(); },
                         [&](std::int64_t layer) { shares.down(layer); });
  return shares.take();
}

std::int64_t rollout_bytes(std::int64_t tokens, std::int64_t rows) {
  const std::int64_t numbers = 2 + thread_count();  // the shares, the sums and each thread's part of them
  return rows * tokens * numbers * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace regard
