#include "attention/substitute.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>

#include "attention/forward.h"
#include "parallel/parallel_for.h"
#include "tensor/error.h"

namespace regard {
namespace {

// Some rows of a problem and one head of it, as a problem of its own. Not to be moved: the problem points into it.
class OneHead {
 public:
  // The rows as they are.
  OneHead(const Problem& whole, std::int32_t head, std::vector<std::int64_t> which)
      : OneHead(whole, head, which, true) {
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      const Sequence& sequence = whole.sequences[sequence_[s]];
      sequences_[s].k = keys_.emplace_back(sequence.k, kv_head_, sequence.length).view();
    }
    q_.reserve(rows_.size() * static_cast<std::size_t>(whole.q.shape[2]));
    for (const std::int64_t row : rows_)
      for (std::int64_t d = 0; d < whole.q.shape[2]; ++d) q_.push_back(whole.q(row, head, d));
    problem_.q = {q_.data(), {std::ssize(rows_), 1, whole.q.shape[2]}};
  }
  // The rows as they are substituted.
  OneHead(const Problem& whole, const Substitute& substitute)
      : OneHead(whole, substitute.head, substitute.rows, substitute.sink) {
    for (Sequence& sequence : sequences_) sequence.k = substitute.k.view();
    if (!substitute.bias) problem_.mask.bias = {};
    problem_.q = {substitute.q.data(), {std::ssize(rows_), 1, whole.q.shape[2]}};
  }
  OneHead(const OneHead&) = delete;
  OneHead& operator=(const OneHead&) = delete;

  const Problem& problem() const { return problem_; }
  const std::vector<std::int64_t>& rows() const { return rows_; }  // in the whole problem
  std::int32_t head() const { return head_; }
  // A tile of this problem, named as in the whole one; `rows` and `heads` hold the names.
  WeightTile renamed(WeightTile tile, std::vector<std::int64_t>& rows, std::vector<std::int32_t>& heads) const {
    rows.resize(static_cast<std::size_t>(tile.lanes));
    heads.assign(static_cast<std::size_t>(tile.lanes), head_);
    for (int lane = 0; lane < tile.lanes; ++lane) rows[lane] = rows_[tile.row[lane]];
    tile.sequence = sequence_[tile.sequence];
    tile.kv_head = kv_head_;
    tile.row = rows.data();
    tile.head = heads.data();
    return tile;
  }

 private:
  // All but queries and keys.
  OneHead(const Problem& whole, std::int32_t head, std::vector<std::int64_t> rows, bool sink)
      : problem_(whole), rows_(std::move(rows)), head_(head), kv_head_(head / (whole.q.shape[1] / whole.kv_heads)) {
    View<const float, 3>& bias = problem_.mask.bias;
    if (bias.data != nullptr && !whole.mask.bias_by_position)
      throw Error(ErrorCode::unsupported, "attention: weights cannot be substituted in a problem with a bias");
    if (bias.data != nullptr) {
      bias.data += head * bias.stride[1];
      bias.shape[1] = 1;
    }
    problem_.kv_heads = 1;
    if (!whole.sinks.empty())
      problem_.sinks = sink ? whole.sinks.subspan(static_cast<std::size_t>(head), 1) : std::span<const float>{};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      QueryRow row = whole.rows[rows_[i]];
      const auto found = std::find(sequence_.begin(), sequence_.end(), row.sequence);
      if (found == sequence_.end()) {
        Sequence& mine = sequences_.emplace_back(whole.sequences[row.sequence]);
        mine.v = values_.emplace_back(mine.v, kv_head_, mine.length).view();
        sequence_.push_back(row.sequence);
        row.sequence = static_cast<std::int32_t>(sequence_.size()) - 1;
      } else {
        row.sequence = static_cast<std::int32_t>(found - sequence_.begin());
      }
      query_rows_.push_back(row);
      const auto [first, last] = std::equal_range(
          whole.mask.edges.begin(), whole.mask.edges.end(), EdgeEdit{rows_[i], head, 0, 0, 0},
          [](const EdgeEdit& a, const EdgeEdit& b) { return std::pair(a.row, a.head) < std::pair(b.row, b.head); });
      for (auto edge = first; edge != last; ++edge)
        edges_.push_back({static_cast<std::int64_t>(i), 0, edge->key_begin, edge->key_end, edge->add});
    }
    problem_.sequences = sequences_;
    problem_.rows = query_rows_;
    problem_.mask.edges = edges_;
  }

  Problem problem_;
  const std::vector<std::int64_t> rows_;
  const std::int32_t head_;
  const std::int64_t kv_head_;
  std::vector<std::int32_t> sequence_;  // of the whole problem, by the number here
  std::vector<Sequence> sequences_;
  std::deque<OneHeadRows> keys_, values_;
  std::vector<QueryRow> query_rows_;
  std::vector<EdgeEdit> edges_;
  std::vector<float> q_;
};

// Hands the tiles of one head on under the names of the whole problem.
class Renamed final : public Reader {
 public:
  Renamed(const OneHead& part, std::span<Reader* const> readers) : part_(part), readers_(readers) {}
  void begin(const Problem&, int) override {}
  void tile(const WeightTile& tile, int thread) override {
    std::vector<std::int64_t> rows;
    std::vector<std::int32_t> heads;
    const WeightTile renamed = part_.renamed(tile, rows, heads);
    for (Reader* reader : readers_) reader->tile(renamed, thread);
  }

 private:
  const OneHead& part_;
  std::span<Reader* const> readers_;
};

void read_part(const OneHead& part, View<const RowSoftmax, 2> softmax, std::span<Reader* const> readers) {
  Tensor<RowSoftmax, 2> mine({std::ssize(part.rows()), 1});
  for (std::size_t i = 0; i < part.rows().size(); ++i) mine(i, 0) = softmax(part.rows()[i], part.head());
  Renamed renamed(part, readers);
  Reader* reader = &renamed;
  read(part.problem(), mine.view(), std::span<Reader* const>(&reader, 1));
}

}  // namespace

OneHeadRows::OneHeadRows(const Rows& from, std::int64_t head, std::int64_t length) : rows(from) {
  const std::int64_t count = (length + from.page_rows - 1) / from.page_rows;
  for (std::int64_t page = 0; page < count; ++page) pages.push_back(from.pages[page] + head * from.head_stride);
}

Rows OneHeadRows::view() const {
  Rows view = rows;
  view.pages = pages.data();
  return view;
}

Substitute unchanged(const Problem& problem, std::int32_t head, std::vector<std::int64_t> rows) {
  const Sequence& sequence = problem.sequences[problem.rows[rows.at(0)].sequence];
  Substitute same;
  same.head = head;
  for (const std::int64_t row : rows)
    for (std::int64_t d = 0; d < problem.q.shape[2]; ++d) same.q.push_back(problem.q(row, head, d));
  same.k = OneHeadRows(sequence.k, head / (problem.q.shape[1] / problem.kv_heads), sequence.length);
  same.rows = std::move(rows);
  return same;
}

void forward(const Problem& problem, const EachSubstitute& each, View<float, 3> out, View<RowSoftmax, 2> softmax) {
  const auto put = [&](const Substitute& substitute) {
    const OneHead part(problem, substitute);
    const std::int64_t n = std::ssize(part.rows());
    Tensor<float, 3> z({n, 1, problem.value_channels});
    Tensor<RowSoftmax, 2> mine({n, 1});
    forward(part.problem(), z.view(), mine.view());
    for (std::int64_t i = 0; i < n; ++i) {
      bool changed = false;
      for (std::int64_t e = 0; e < problem.value_channels; ++e) {
        float& x = out(part.rows()[i], part.head(), e);
        changed |= std::memcmp(&x, &z(i, 0, e), sizeof(float)) != 0;
        x = z(i, 0, e);
      }
      if (changed && substitute.changed != nullptr) std::atomic_ref(*substitute.changed).fetch_add(1);
      if (softmax.data != nullptr) softmax(part.rows()[i], part.head()) = mine(i, 0);
    }
  };
  // Many small ones (a row each) are shared out; a large one is shared out inside.
  constexpr std::size_t kTogether = 64, kSmall = 16;
  std::vector<Substitute> small;
  const auto flush = [&] {
    parallel_for(std::ssize(small), [&](std::int64_t i, int) { put(small[i]); });
    small.clear();
  };
  each([&](const Substitute& substitute) {
    if (substitute.rows.size() > kSmall) return put(substitute);
    small.push_back(substitute);
    if (small.size() == kTogether) flush();
  });
  flush();
}

void read(const Problem& problem, const EachSubstitute& each, View<const RowSoftmax, 2> softmax,
          std::span<Reader* const> readers) {
  for (Reader* reader : readers) reader->begin(problem, thread_count());
  const std::int64_t rows = problem.q.shape[0];
  std::vector<std::vector<bool>> taken(static_cast<std::size_t>(problem.q.shape[1]));
  for (auto& head : taken) head.resize(static_cast<std::size_t>(rows));
  each([&](const Substitute& substitute) {
    for (const std::int64_t row : substitute.rows) taken[substitute.head][row] = true;
    read_part(OneHead(problem, substitute), softmax, readers);
  });
  for (std::int32_t head = 0; head < problem.q.shape[1]; ++head) {
    std::vector<std::int64_t> others;
    for (std::int64_t row = 0; row < rows; ++row)
      if (!taken[head][row]) others.push_back(row);
    if (!others.empty()) read_part(OneHead(problem, head, std::move(others)), softmax, readers);
  }
  for (Reader* reader : readers) reader->finish();
}

Tensor<float, 3> weights(const Problem& problem, const Substitute& substitute) {
  const OneHead part(problem, substitute);
  const std::int64_t n = std::ssize(part.rows());
  Tensor<float, 3> z({n, 1, problem.value_channels});
  Tensor<RowSoftmax, 2> softmax({n, 1});
  forward(part.problem(), z.view(), softmax.view());
  return full_pattern(part.problem(), softmax.view());
}

}  // namespace regard
