#include "lesson/attend.h"

#include <array>
#include <atomic>

#include "attention/forward.h"
#include "attention/read.h"
#include "kernels/matmul.h"

namespace regard {
namespace {

// Rows side by side in memory, as a problem wants them.
Rows rows_of(View<const float, 3> x, const std::byte* const* page) {
  return {.dtype = DType::f32,
          .pages = page,
          .page_rows = std::max<std::int64_t>(x.shape[0], 1),
          .row_stride = x.stride[0] * 4,
          .head_stride = x.stride[1] * 4,
          .inner_stride = x.stride[2] * 4};
}

class ScoreReader final : public Reader {
 public:
  explicit ScoreReader(View<float, 3> scores) : scores_(scores) {
    for (std::int64_t i = 0; i < scores.size(); ++i) scores.data[i] = -std::numeric_limits<float>::infinity();
  }
  void begin(const Problem&, int) override {}
  void tile(const WeightTile& tile, int) override {
    for (std::int64_t key = 0; key < tile.keys; ++key)
      for (int lane = 0; lane < tile.lanes; ++lane)
        scores_(tile.row[lane], tile.head[lane], tile.key_begin + key) = tile.score[key * tile.stride + lane];
  }

 private:
  View<float, 3> scores_;
};

class PairCounter final : public Reader {
 public:
  void begin(const Problem&, int) override {}
  void tile(const WeightTile& tile, int) override {
    std::int64_t pairs = 0;
    for (std::int64_t key = 0; key < tile.keys; ++key)
      for (int lane = 0; lane < tile.lanes; ++lane)
        pairs += tile.score[key * tile.stride + lane] > -std::numeric_limits<float>::infinity();
    pairs_ += pairs;  // a sum of whole numbers has no order
  }
  std::int64_t pairs() const { return pairs_; }

 private:
  std::atomic<std::int64_t> pairs_ = 0;
};

// A problem of one sequence with what it points at.
struct OneSequence {
  OneSequence(View<const float, 3> q, View<const float, 3> k, View<const float, 3> v, const AttendOptions& options)
      : pages{reinterpret_cast<const std::byte*>(k.data), reinterpret_cast<const std::byte*>(v.data)},
        visible(options.visible),
        rows(query_rows(1, q.shape[0], k.shape[0])) {
    sequence = {.length = k.shape[0],
                .k = rows_of(k, &pages[0]),
                .v = rows_of(v, &pages[1]),
                .visible = visible,
                .segment = {}};
    problem.q = q;
    problem.rows = rows;
    problem.sequences = {&sequence, 1};
    problem.kv_heads = k.shape[1];
    problem.value_channels = v.shape[2];
    problem.mask.causal = options.causal;
    problem.scale = options.scale;
  }
  OneSequence(const OneSequence&) = delete;
  OneSequence& operator=(const OneSequence&) = delete;

  std::array<const std::byte*, 2> pages;
  std::vector<std::uint8_t> visible;
  std::vector<QueryRow> rows;
  Sequence sequence;
  Problem problem;
};

View<const float, 3> with_one_head(View<const float, 2> x) {
  return {x.data, {x.shape[0], 1, x.shape[1]}, {x.stride[0], x.shape[1], x.stride[1]}};
}

}  // namespace

Attended attend(View<const float, 3> q, View<const float, 3> k, View<const float, 3> v, const AttendOptions& options) {
  const OneSequence one(q, k, v, options);
  const std::int64_t T = q.shape[0], H = q.shape[1], S = k.shape[0];
  Attended result{
      .scores = Tensor<float, 3>({T, H, S}), .weights = {}, .outputs = Tensor<float, 3>({T, H, v.shape[2]})};
  Tensor<RowSoftmax, 2> softmax({T, H});
  forward(one.problem, result.outputs.view(), softmax.view());
  result.weights = full_pattern(one.problem, softmax.view());
  ScoreReader scores(result.scores.view());
  Reader* const readers[] = {&scores};
  read(one.problem, softmax.view(), readers);
  return result;
}

Attended attend(View<const float, 2> q, View<const float, 2> k, View<const float, 2> v, const AttendOptions& options) {
  return attend(with_one_head(q), with_one_head(k), with_one_head(v), options);
}

View<const float, 2> one_head(const Tensor<float, 3>& rows) {
  return {rows.data(), {rows.shape()[0], rows.shape()[2]}};
}

std::int64_t pairs_read(std::int64_t rows, std::int64_t keys, bool causal) {
  const Tensor<float, 3> q({rows, 1, 1}), k({keys, 1, 1});
  const OneSequence one(q.view(), k.view(), k.view(), {.causal = causal});
  Tensor<float, 3> out({rows, 1, 1});
  Tensor<RowSoftmax, 2> softmax({rows, 1});
  forward(one.problem, out.view(), softmax.view());
  PairCounter counter;
  Reader* const readers[] = {&counter};
  read(one.problem, softmax.view(), readers);
  return counter.pairs();
}

Tensor<float, 2> project(View<const float, 2> x, View<const float, 2> w) {
  // The engine keeps weights by outputs.
  Tensor<float, 2> turned({w.shape[1], w.shape[0]}), y({x.shape[0], w.shape[1]});
  for (std::int64_t c = 0; c < w.shape[0]; ++c)
    for (std::int64_t n = 0; n < w.shape[1]; ++n) turned(n, c) = w(c, n);
  matmul({.dtype = DType::f32,
          .rows = w.shape[1],
          .cols = w.shape[0],
          .data = reinterpret_cast<const std::byte*>(turned.data()),
          .row_stride = w.shape[0] * 4},
         x, y.view());
  return y;
}

Tensor<float, 2> to_tensor(const SmallMatrix& matrix) {
  Tensor<float, 2> result({matrix.rows, matrix.columns});
  for (std::size_t i = 0; i < matrix.items.size(); ++i) result.data()[i] = static_cast<float>(matrix.items[i]);
  return result;
}

}  // namespace regard
