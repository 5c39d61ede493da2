#pragma once
// One problem in every form in which it can be computed: the reference; on each target all rows at once, each row by
// itself (decode), and many copies of each row (so that few rows fill whole panels as well); with one thread and with
// several; weights from read(), weights() and full_pattern(). The forms must agree with each other to the bit.

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "attention/support.h"
#include "support/targets.h"

namespace regard::test {

// Chosen rows of a problem, in any order and any number of times; owns what had to be laid out again.
class ChosenRows {
 public:
  ChosenRows(const Problem& from, const std::vector<std::int64_t>& chosen) : problem(from) {
    const auto [unused, heads, channels] = from.q.shape;
    const std::int64_t count = std::ssize(chosen);
    q_ = Tensor<float, 3>({count, heads, channels});
    std::int64_t longest = 0;
    for (const Sequence& sequence : from.sequences) longest = std::max(longest, sequence.length);
    const bool biased = from.mask.bias.data != nullptr;
    bias_ = Tensor<float, 3>({biased ? count : 0, heads, longest});
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = chosen[i];
      rows_.push_back(from.rows[row]);
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t d = 0; d < channels; ++d) q_(i, h, d) = from.q(row, h, d);
        for (std::int64_t j = 0; biased && j < longest; ++j) bias_(i, h, j) = from.mask.bias(row, h, j);
      }
      for (EdgeEdit edge : from.mask.edges) {
        if (edge.row != row) continue;
        edge.row = i;
        edges_.push_back(edge);
      }
    }
    problem.q = std::as_const(q_).view();
    problem.rows = rows_;
    problem.mask.edges = edges_;
    problem.mask.bias = bias_.size() > 0 ? std::as_const(bias_).view() : View<const float, 3>();
  }
  ChosenRows(const ChosenRows&) = delete;
  Problem problem;

 private:
  Tensor<float, 3> q_, bias_;
  std::vector<QueryRow> rows_;
  std::vector<EdgeEdit> edges_;
};

// Puts tiles together to the whole pattern, and holds the tiles to what Reader promises.
class PatternReader final : public Reader {
 public:
  Tensor<float, 3> weight, score;

  void begin(const Problem& problem, int threads) override {
    problem_ = &problem;
    std::int64_t longest = 0;
    for (const Sequence& sequence : problem.sequences) longest = std::max(longest, sequence.length);
    const auto [rows, heads, unused] = problem.q.shape;
    weight = Tensor<float, 3>({rows, heads, longest});
    score = Tensor<float, 3>({rows, heads, longest});
    for (float& s : std::span(score.data(), score.size())) s = -kInfinity;
    next_key_ = Tensor<std::int64_t, 2>({rows, heads});
    thread_of_ = Tensor<std::int32_t, 2>({rows, heads});
    threads_ = threads;
    finished = 0;
  }
  void tile(const WeightTile& tile, int thread) override {
    const std::int64_t group = problem_->q.shape[1] / problem_->kv_heads;
    const bool sound = thread >= 0 && thread < threads_ && tile.keys > 0 && tile.lanes > 0 && tile.key_begin >= 0 &&
                       tile.key_begin / 128 == (tile.key_begin + tile.keys - 1) / 128 &&
                       tile.key_begin + tile.keys <= problem_->sequences[tile.sequence].length &&
                       tile.stride >= tile.lanes;
    bool seen = false;
    for (int lane = 0; lane < tile.lanes && sound; ++lane) {
      const std::int64_t row = tile.row[lane];
      const std::int32_t head = tile.head[lane];
      if (lane > 0) {
        const std::pair before(tile.row[lane - 1], tile.head[lane - 1]);
        complain(before < std::pair(row, head), "lanes in order");
      }
      complain(problem_->rows[row].sequence == tile.sequence, "one sequence");
      complain(head / group == tile.kv_head, "one key/value head");
      complain(next_key_(row, head) <= tile.key_begin, "keys ascending");
      next_key_(row, head) = tile.key_begin + tile.keys;
      complain(thread_of_(row, head) == 0 || thread_of_(row, head) == thread + 1, "one thread per lane");
      thread_of_(row, head) = thread + 1;
      for (std::int64_t key = 0; key < tile.keys; ++key) {
        weight(row, head, tile.key_begin + key) = tile.weight[key * tile.stride + lane];
        score(row, head, tile.key_begin + key) = tile.score[key * tile.stride + lane];
        seen = seen || tile.score[key * tile.stride + lane] != -kInfinity;
      }
    }
    complain(sound, "a tile within one block of keys");
    if (!seen) ++unseen;
  }
  void finish() override { ++finished; }

  int finished = 0;
  std::atomic<int> unseen = 0;  // tiles of which no lane sees a key
  // Broken promises by name; tile() may run on any thread, so it cannot say them itself.
  std::vector<std::string> complaints() const {
    const std::lock_guard lock(mutex_);
    return {broken_.begin(), broken_.end()};
  }

 private:
  void complain(bool kept, const char* promise) {
    if (kept) return;
    const std::lock_guard lock(mutex_);
    broken_.insert(promise);
  }

  const Problem* problem_ = nullptr;
  int threads_ = 0;
  Tensor<std::int64_t, 2> next_key_;
  Tensor<std::int32_t, 2> thread_of_;
  mutable std::mutex mutex_;
  std::set<std::string> broken_;
};

inline Tensor<float, 3> read_pattern(const Problem& problem, const Result& result) {
  PatternReader reader;
  Reader* readers[] = {&reader};
  read(problem, std::as_const(result.softmax).view(), readers);
  EXPECT_EQ(reader.finished, 1);
  EXPECT_EQ(reader.complaints(), std::vector<std::string>{}) << "what tiles promise";
  return std::move(reader.weight);
}

// Equal bits, except that any NaN is as good as another: whose sign a NaN takes is not part of the contract.
template <typename A, typename B>
bool same_numbers(const A& a, const B& b) {
  if (a.shape() != b.shape()) return false;
  const auto* x = reinterpret_cast<const float*>(a.data());
  const auto* y = reinterpret_cast<const float*>(b.data());
  const auto count = static_cast<std::size_t>(a.size()) * sizeof(*a.data()) / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(x + i, y + i, sizeof(float)) != 0 && !(std::isnan(x[i]) && std::isnan(y[i]))) return false;
  }
  return true;
}

struct Outcome {
  std::string form;
  Tensor<float, 3> out;          // [rows, H, E]
  Tensor<float, 3> weight;       // [rows, H, longest S]
  Tensor<float, 2> log_sum_exp;  // [rows, H]
};

inline Outcome outcome_of_reference(const Problem& problem) {
  const ReferenceAttention truth = reference_attention(problem);
  Outcome outcome{"reference", Tensor<float, 3>(truth.out.shape()), Tensor<float, 3>(truth.weight.shape()),
                  Tensor<float, 2>(truth.log_sum_exp.shape())};
  const auto copy = [](const auto& from, auto& to) {
    for (std::int64_t i = 0; i < from.size(); ++i) to.data()[i] = static_cast<float>(from.data()[i]);
  };
  copy(truth.out, outcome.out);
  copy(truth.weight, outcome.weight);
  copy(truth.log_sum_exp, outcome.log_sum_exp);
  return outcome;
}

inline Outcome all_rows(const Problem& problem) {
  Result result = run(problem);
  Tensor<float, 3> weight = read_pattern(problem, result);
  EXPECT_TRUE(same_numbers(weight, pattern(problem, result))) << "read() and full_pattern() differ";
  return {"all rows", std::move(result.out), std::move(weight), std::move(result.log_sum_exp)};
}

// Rows computed apart and put back together; `copies` of each row stand side by side.
inline Outcome rows_apart(const Problem& problem, int copies) {
  const auto [rows, heads, unused] = problem.q.shape;
  std::int64_t longest = 0;
  for (const Sequence& sequence : problem.sequences) longest = std::max(longest, sequence.length);
  Outcome outcome{copies == 1 ? "row by row" : "many copies of each row",
                  Tensor<float, 3>({rows, heads, problem.value_channels}), Tensor<float, 3>({rows, heads, longest}),
                  Tensor<float, 2>({rows, heads})};
  for (std::int64_t row = 0; row < rows; ++row) {
    const ChosenRows alone(problem, std::vector<std::int64_t>(copies, row));
    const Result result = run(alone.problem);
    const Tensor<float, 3> weight = read_pattern(alone.problem, result);
    for (int copy = 0; copy < copies; ++copy) {
      const auto put = [&](const auto& from, auto& to) {
        const std::int64_t size = from.size() / copies;
        for (std::int64_t i = 0; i < size; ++i) {
          const float mine = from.data()[copy * size + i], first = from.data()[i];
          if (copy > 0 && std::memcmp(&mine, &first, sizeof(mine)) != 0 && !(std::isnan(mine) && std::isnan(first))) {
            ADD_FAILURE() << "copies of row " << row << " differ";
            return;
          }
          to.data()[row * size + i] = mine;
        }
      };
      put(result.out, outcome.out);
      put(weight, outcome.weight);
      put(result.log_sum_exp, outcome.log_sum_exp);
    }
  }
  return outcome;
}

// The reference first, then every form on every target.
inline std::vector<Outcome> outcomes_of(const Problem& problem) {
  std::vector<Outcome> outcomes;
  outcomes.push_back(outcome_of_reference(problem));
  const regard::testing::Restore restore;
  for (const std::string& target : testing::tested_targets()) {
    set_target(target);
    for (int threads : {1, 3}) {
      set_thread_count(threads);
      for (int copies : {0, 1, 20}) {
        Outcome outcome = copies == 0 ? all_rows(problem) : rows_apart(problem, copies);
        outcome.form = target + ", " + std::to_string(threads) + " threads, " + outcome.form;
        if (outcomes.size() > 1) {
          EXPECT_TRUE(same_numbers(outcome.out, outcomes[1].out)) << outcome.form << " differs in out";
          EXPECT_TRUE(same_numbers(outcome.weight, outcomes[1].weight)) << outcome.form << " differs in weight";
          EXPECT_TRUE(same_numbers(outcome.log_sum_exp, outcomes[1].log_sum_exp)) << outcome.form << " differs in lse";
        }
        outcomes.push_back(std::move(outcome));
      }
    }
  }
  return outcomes;
}

// Each form within law 1 of the reference.
inline void expect_law_1(const Problem& problem) {
  const ReferenceAttention truth = reference_attention(problem);
  const Errors limit = allowed(problem, truth);
  for (const Outcome& outcome : outcomes_of(problem)) {
    SCOPED_TRACE(outcome.form);
    Result result;
    result.out = Tensor<float, 3>(outcome.out.shape());
    result.log_sum_exp = Tensor<float, 2>(outcome.log_sum_exp.shape());
    std::copy_n(outcome.out.data(), outcome.out.size(), result.out.data());
    std::copy_n(outcome.log_sum_exp.data(), outcome.log_sum_exp.size(), result.log_sum_exp.data());
    const Errors errors = errors_of(result, outcome.weight, truth);
    EXPECT_LE(errors.out, limit.out);
    EXPECT_LE(errors.weight, limit.weight);
    EXPECT_LE(errors.log_sum_exp, limit.log_sum_exp);
  }
}

// body(outcome) for the reference and every form.
template <class Body>
void on_every_outcome(const Problem& problem, Body body) {
  for (const Outcome& outcome : outcomes_of(problem)) {
    SCOPED_TRACE(outcome.form);
    body(outcome);
  }
}

// A row's weights and its sink's share.
inline double books_of(const Problem& problem, const Outcome& outcome, std::int64_t row, std::int64_t head) {
  double sum = problem.sinks.empty() ? 0 : std::exp(double{problem.sinks[head]} - outcome.log_sum_exp(row, head));
  for (std::int64_t j = 0; j < outcome.weight.shape()[2]; ++j) sum += outcome.weight(row, head, j);
  return sum;
}

// A row that sees nothing: output 0, weights 0, log-sum-exp -inf.
inline void expect_saw_nothing(const Outcome& outcome, std::int64_t row, std::int64_t head) {
  for (std::int64_t e = 0; e < outcome.out.shape()[2]; ++e) EXPECT_EQ(outcome.out(row, head, e), 0) << e;
  for (std::int64_t j = 0; j < outcome.weight.shape()[2]; ++j) EXPECT_EQ(outcome.weight(row, head, j), 0) << j;
  EXPECT_EQ(outcome.log_sum_exp(row, head), -kInfinity);
}

// The keys with a weight other than 0, as a list.
inline std::vector<std::int64_t> keys_read(const Outcome& outcome, std::int64_t row, std::int64_t head) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < outcome.weight.shape()[2]; ++j) {
    if (outcome.weight(row, head, j) != 0) keys.push_back(j);
  }
  return keys;
}

inline std::vector<std::int64_t> keys_between(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = begin; j < end; ++j) keys.push_back(j);
  return keys;
}

inline bool all_finite(const Outcome& outcome) {
  const auto finite = [](const Tensor<float, 3>& t) {
    return std::all_of(t.data(), t.data() + t.size(), [](float x) { return std::isfinite(x); });
  };
  return finite(outcome.out) && finite(outcome.weight);
}

}  // namespace regard::test
