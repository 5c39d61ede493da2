#pragma once
// Problems that own their memory, ways to run them, and the yardstick of their errors.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <ranges>
#include <span>
#include <vector>

#include "attention/dropout.h"
#include "attention/forward.h"
#include "attention/problem.h"
#include "attention/read.h"
#include "attention/reference.h"
#include "kernels/target.h"
#include "parallel/parallel_for.h"
#include "support/targets.h"
#include "tensor/buffer.h"
#include "tensor/half.h"

namespace regard::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// How the key and value rows of a sequence lie in memory.
enum class Layout { in_place, heads_outside, paged, pointer_per_row, strided, reversed };

struct Shape {
  std::vector<std::int64_t> queries = {5};  // rows of each sequence
  std::vector<std::int64_t> lengths = {9};  // keys of each sequence
  std::int64_t heads = 2, kv_heads = 1, channels = 8, value_channels = 8;
  DType dtype = DType::f32;
  Layout layout = Layout::in_place;
  std::int64_t page_rows = 5;
  unsigned seed = 1;
  float spread = 1;  // standard deviation of queries
};

// One sequence; unless asked for others, heads that fill no vector.
inline Shape shape_of(std::int64_t queries, std::int64_t length, std::int64_t heads = 2, std::int64_t kv_heads = 1,
                      std::int64_t channels = 6, std::int64_t value_channels = 9) {
  Shape shape;
  shape.queries = {queries};
  shape.lengths = {length};
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.channels = channels;
  shape.value_channels = value_channels;
  return shape;
}

// Keys or values of one sequence: the numbers (already rounded to the dtype), and the same in some layout.
class StoredRows {
 public:
  StoredRows() = default;
  StoredRows(const std::vector<float>& numbers, std::int64_t length, std::int64_t heads, std::int64_t channels,
             const Shape& shape)
      : numbers(numbers) {
    const std::int64_t size = shape.dtype == DType::f32 ? 4 : 2;
    rows.dtype = shape.dtype;
    rows.inner_stride = size;
    rows.head_stride = channels * size;
    rows.row_stride = heads * channels * size;
    rows.page_rows = std::max<std::int64_t>(length, 1);
    std::int64_t bytes = length * heads * channels * size, origin = 0;
    if (shape.layout == Layout::heads_outside) {
      rows.row_stride = channels * size;
      rows.head_stride = length * channels * size;
    } else if (shape.layout == Layout::strided) {  // channels apart, rows apart
      rows.inner_stride = 3 * size;
      rows.head_stride = channels * rows.inner_stride + size;
      rows.row_stride = heads * rows.head_stride + 5 * size;
      bytes = length * rows.row_stride;
    } else if (shape.layout == Layout::reversed) {  // everything backwards
      origin = bytes - size;
      rows.inner_stride = -size;
      rows.head_stride = -rows.head_stride;
      rows.row_stride = -rows.row_stride;
    }
    const bool scattered = shape.layout == Layout::paged || shape.layout == Layout::pointer_per_row;
    if (scattered) rows.page_rows = shape.layout == Layout::paged ? shape.page_rows : 1;
    const std::int64_t page_bytes = scattered ? rows.page_rows * rows.row_stride : bytes;
    const std::int64_t count = scattered ? (length + rows.page_rows - 1) / rows.page_rows : (length > 0 ? 1 : 0);
    // One allocation per page, exactly as long as its rows, so that a sanitizer sees a step outside.
    for (std::int64_t page = 0; page < count; ++page) {
      const std::int64_t mine =
          scattered ? std::min(page_bytes, (length - page * rows.page_rows) * rows.row_stride) : bytes;
      memory.push_back(std::make_unique<std::byte[]>(mine));
      pages.push_back(memory.back().get() + origin);
    }
    rows.pages = pages.data();
    for (std::int64_t j = 0; j < length; ++j) {
      for (std::int64_t g = 0; g < heads; ++g) {
        for (std::int64_t c = 0; c < channels; ++c) set(j, g, c, numbers[(j * heads + g) * channels + c]);
      }
    }
  }
  void set(std::int64_t j, std::int64_t g, std::int64_t c, float value) {
    std::byte* at = const_cast<std::byte*>(rows.row(j)) + g * rows.head_stride + c * rows.inner_stride;
    if (rows.dtype == DType::f32) {
      std::memcpy(at, &value, sizeof(value));
    } else {
      const std::uint16_t half = rows.dtype == DType::f16 ? f16_from_f32(value) : bf16_from_f32(value);
      std::memcpy(at, &half, sizeof(half));
    }
  }

  std::vector<float> numbers;
  std::vector<std::unique_ptr<std::byte[]>> memory;
  std::vector<const std::byte*> pages;
  Rows rows;
};

// A problem with random queries, keys and values; masks and the rest are set on `problem` by the test.
class TestProblem {
 public:
  explicit TestProblem(const Shape& shape) : shape(shape) {
    std::mt19937 random(shape.seed);
    std::normal_distribution<float> normal;
    std::int64_t rows = 0;
    for (std::int64_t n : shape.queries) rows += n;
    q = Tensor<float, 3>({rows, shape.heads, shape.channels});
    for (std::int64_t i = 0; i < q.size(); ++i) q.data()[i] = shape.spread * normal(random);
    for (std::size_t i = 0; i < shape.lengths.size(); ++i) {
      const std::int64_t length = shape.lengths[i];
      std::vector<float> k(length * shape.kv_heads * shape.channels), v(length * shape.kv_heads * shape.value_channels);
      for (float& number : k) number = normal(random);
      for (float& number : v) number = normal(random);
      keys.emplace_back(k, length, shape.kv_heads, shape.channels, shape);
      values.emplace_back(v, length, shape.kv_heads, shape.value_channels, shape);
      for (std::int64_t t = 0; t < shape.queries[i]; ++t) {
        query_rows.push_back({static_cast<std::int32_t>(i), 0, length - shape.queries[i] + t});
      }
    }
    sequences.resize(shape.lengths.size());
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      sequences[i].length = shape.lengths[i];
      sequences[i].k = keys[i].rows;
      sequences[i].v = values[i].rows;
    }
    problem.q = std::as_const(q).view();
    problem.rows = query_rows;
    problem.sequences = sequences;
    problem.kv_heads = shape.kv_heads;
    problem.value_channels = shape.value_channels;
  }
  TestProblem(const TestProblem&) = delete;
  void edges(std::vector<EdgeEdit> wanted) {
    edge_edits = std::move(wanted);
    problem.mask.edges = edge_edits;
  }
  void sinks(std::vector<float> wanted) {
    sink_scores = std::move(wanted);
    problem.sinks = sink_scores;
  }
  void bias(Tensor<float, 3> wanted) {
    bias_numbers = std::move(wanted);
    problem.mask.bias = std::as_const(bias_numbers).view();
  }
  void visible(std::size_t sequence, std::vector<std::uint8_t> wanted) {
    visible_keys.resize(sequences.size());
    visible_keys[sequence] = std::move(wanted);
    sequences[sequence].visible = visible_keys[sequence];
  }
  void segments(std::size_t sequence, std::vector<std::int32_t> wanted) {
    segment_keys.resize(sequences.size());
    segment_keys[sequence] = std::move(wanted);
    sequences[sequence].segment = segment_keys[sequence];
  }

  Shape shape;
  Tensor<float, 3> q;
  std::vector<StoredRows> keys, values;
  std::vector<QueryRow> query_rows;
  std::vector<Sequence> sequences;
  std::vector<EdgeEdit> edge_edits;
  std::vector<float> sink_scores;
  Tensor<float, 3> bias_numbers;
  std::vector<std::vector<std::uint8_t>> visible_keys;
  std::vector<std::vector<std::int32_t>> segment_keys;
  Problem problem;
};

struct Result {
  Tensor<float, 3> out;
  Tensor<RowSoftmax, 2> softmax;
  Tensor<float, 2> log_sum_exp;
};

inline Result run(const Problem& problem) {
  const std::int64_t rows = problem.q.shape[0], heads = problem.q.shape[1];
  Result result{Tensor<float, 3>({rows, heads, problem.value_channels}), Tensor<RowSoftmax, 2>({rows, heads}),
                Tensor<float, 2>({rows, heads})};
  for (std::int64_t i = 0; i < result.out.size(); ++i) result.out.data()[i] = 777;  // everything must be written
  forward(problem, result.out.view(), result.softmax.view(), result.log_sum_exp.view());
  return result;
}

inline Tensor<float, 3> pattern(const Problem& problem, const Result& result) {
  return full_pattern(problem, std::as_const(result.softmax).view());
}

template <typename T, int Rank>
bool same_bits(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  return a.shape() == b.shape() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0);
}
inline bool same_bits(const Result& a, const Result& b) {
  return same_bits(a.out, b.out) && same_bits(a.softmax, b.softmax) && same_bits(a.log_sum_exp, b.log_sum_exp);
}

// Runs `body` on each target this processor has, each with 1, 2 and 3 threads (one thread and three take the paths of
// many and of few pieces of work).
template <class Body>
void on_every_form(Body body) {
  for (const std::string& target : testing::tested_targets()) {
    for (int threads : {1, 2, 3}) {
      set_target(target);
      set_thread_count(threads);
      body(target + " with " + std::to_string(threads) + " threads");
    }
  }
  set_target("best");
}

// The numbers of a row as the kernel must understand them.
inline float stored(const Rows& rows, std::int64_t j, std::int64_t g, std::int64_t c) {
  return static_cast<float>(reference_element(rows, j, g, c));
}

// The score of a key that row r sees, as a plain evaluation in float32 has it: `channels` in the order of the sum.
// tanh: what the softcap's was, where it is asked for and there is one.
template <class Channels>
float plain_score(const Problem& problem, std::int64_t r, std::int64_t h, std::int64_t j, const Channels& channels,
                  float* tanh = nullptr) {
  const Sequence& sequence = problem.sequences[problem.rows[r].sequence];
  const std::int64_t g = h / (problem.q.shape[1] / problem.kv_heads);
  float dot = 0;
  for (const std::int64_t d : channels) dot += problem.q(r, h, d) * stored(sequence.k, j, g, d);
  dot *= problem.scale ? *problem.scale : 1 / std::sqrt(static_cast<float>(problem.q.shape[2]));
  if (problem.softcap > 0) {
    const float capped = std::tanh(dot / problem.softcap);
    if (tanh != nullptr) *tanh = capped;
    dot = problem.softcap * capped;
  }
  const std::int64_t at = problem.mask.bias_by_position ? problem.rows[r].position : r;
  if (problem.mask.bias.data != nullptr) dot += problem.mask.bias(at, h, j);
  for (const EdgeEdit& edge : problem.mask.edges)
    if (edge.row == r && edge.head == h && j >= edge.key_begin && j < edge.key_end) dot += edge.add;
  return dot;
}

struct Errors {
  double out = 0, weight = 0, log_sum_exp = 0;
  double books = 0;  // of the weights and the sink's share, which are 1 together
};

// What a plain evaluation in float32 gets wrong: one loop per sum, the textbook order, libm. Masked scores are taken
// from the truth (weight 0 there), everything else is computed here.
inline Errors plain_errors(const Problem& problem, const ReferenceAttention& truth) {
  Errors errors;
  const auto [rows, heads, channels] = problem.q.shape;
  for (std::int64_t r = 0; r < rows; ++r) {
    const Sequence& sequence = problem.sequences[problem.rows[r].sequence];
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t g = h / (heads / problem.kv_heads);
      std::vector<float> s(sequence.length, -kInfinity);
      const float sink = problem.sinks.empty() ? -kInfinity : problem.sinks[h];
      float max = sink;
      for (std::int64_t j = 0; j < sequence.length; ++j) {
        if (truth.weight(r, h, j) == 0) continue;
        s[j] = plain_score(problem, r, h, j, std::views::iota(std::int64_t{0}, channels));
        max = std::max(max, s[j]);
      }
      if (max == -kInfinity) continue;
      float sum = 0;
      for (float& score : s) sum += score = std::exp(score - max);
      sum += std::exp(sink - max);
      const float log_sum_exp = max + std::log(sum);
      double books = std::exp(double{sink} - log_sum_exp);
      std::vector<float> out(problem.value_channels, 0.0f);
      for (std::int64_t j = 0; j < sequence.length; ++j) {
        const float weight = s[j] / sum;
        errors.weight = std::max(errors.weight, std::abs(weight - truth.weight(r, h, j)));
        books += weight;
        const float factor = dropout_factor(problem, r, static_cast<std::int32_t>(h), j);
        if (s[j] == 0 || factor == 0) continue;
        for (std::int64_t e = 0; e < problem.value_channels; ++e)
          out[e] += factor * weight * stored(sequence.v, j, g, e);
      }
      for (std::int64_t e = 0; e < problem.value_channels; ++e) {
        errors.out = std::max(errors.out, std::abs(out[e] - truth.out(r, h, e)));
      }
      errors.log_sum_exp = std::max(errors.log_sum_exp, std::abs(log_sum_exp - truth.log_sum_exp(r, h)));
      errors.books = std::max(errors.books, std::abs(books - 1));
    }
  }
  return errors;
}

inline Errors errors_of(const Result& result, const Tensor<float, 3>& weight, const ReferenceAttention& truth) {
  Errors errors;
  const auto worst = [](double a, double b) { return b <= a ? a : b; };  // NaN wins
  for (std::int64_t i = 0; i < truth.out.size(); ++i) {
    errors.out = worst(errors.out, std::abs(result.out.data()[i] - truth.out.data()[i]));
  }
  for (std::int64_t i = 0; i < truth.weight.size(); ++i) {
    errors.weight = worst(errors.weight, std::abs(weight.data()[i] - truth.weight.data()[i]));
  }
  for (std::int64_t i = 0; i < truth.log_sum_exp.size(); ++i) {
    if (result.log_sum_exp.data()[i] == truth.log_sum_exp.data()[i]) continue;  // -inf
    errors.log_sum_exp =
        worst(errors.log_sum_exp, std::abs(result.log_sum_exp.data()[i] - truth.log_sum_exp.data()[i]));
  }
  return errors;
}

// Law 1: at most twice as far from the truth as the plain evaluation. A result is rounded to float32 once more whatever
// is done, which is the second term: half a unit in the last place of the largest number, twice.
inline Errors allowed(const Problem& problem, const ReferenceAttention& truth) {
  const Errors plain = plain_errors(problem, truth);
  const auto rounding = [](const auto& tensor) {
    double largest = 0;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (std::isfinite(tensor.data()[i])) largest = std::max(largest, std::abs(tensor.data()[i]));
    }
    return largest * 0x1p-23;
  };
  double largest_share = 0;  // of a sink, times the log-sum-exp whose rounding changes it
  for (std::int64_t i = 0; i < truth.sink.size(); ++i) {
    if (truth.sink.data()[i] == 0) continue;
    largest_share = std::max(largest_share, truth.sink.data()[i] * std::abs(truth.log_sum_exp.data()[i]));
  }
  return {2 * plain.out + rounding(truth.out), 2 * plain.weight + rounding(truth.weight),
          2 * plain.log_sum_exp + rounding(truth.log_sum_exp), 2 * plain.books + (1 + largest_share) * 0x1p-23};
}

}  // namespace regard::test
