// The canonical order of attention (docs/attention-kernel.md), written out for one row and one head in plain scalar
// code, step by step, and compared with the kernel to the bit. Whoever changes an order changes numbers, and sees it
// here.

#include <gtest/gtest.h>

#include <bit>

#include "attention/forms.h"

namespace regard::test {
namespace {

// ---- The functions, as in src/kernels/simd-inl.h and src/kernels/math-inl.h -----------------------------------------

float polynomial(float x, std::initializer_list<float> coefficients) {
  float p = *coefficients.begin();
  for (const float* c = coefficients.begin() + 1; c != coefficients.end(); ++c) p = std::fma(p, x, *c);
  return p;
}

float canonical_exp(float x) {
  if (!(x <= 88.7228317f)) return x + kInfinity;
  if (x < -87.3365402f) return 0;
  const float t = std::fma(x, 1.44269504f, 12582912.0f), r = t - 12582912.0f;
  const float f = std::fma(r, -1.42860677e-6f, std::fma(r, -0.693145752f, x));
  const float p = polynomial(f, {0.0013814320554956794f, 0.00836885068565607f, 0.041668400168418884f,
                                 0.1666651964187622f, 0.4999999403953552f, 1, 1});
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(t) << 23));
}

float canonical_tanh(float x) {
  const float a = std::abs(x), z = a * a;
  const float p = polynomial(z, {-0.005692296661436558f, 0.02062816731631756f, -0.05373651534318924f,
                                 0.13331405818462372f, -0.3333328068256378f});
  const float near = std::fma(p * z, a, a), far = 1 - 2 / (canonical_exp(a + a) + 1);
  return std::copysign(a < 0.625f ? near : far, x);
}

float canonical_log(float x) {
  if (x == 0) return -kInfinity;
  const auto bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t exponent = (bits - 0x3f2aaaab) >> 23;
  const float k = static_cast<float>(exponent), f = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1;
  const float p =
      polynomial(f, {-0.12492635101079941f, 0.14059589803218842f, -0.12272990494966507f, 0.13989774882793427f,
                     -0.16674457490444183f, 0.20011432468891144f, -0.24999919533729553f, 0.33333197236061096f, -0.5f});
  const float y = std::fma(k, 1.42860677e-6f, f * f * p);
  return std::fma(k, 0.693145752f, y + f);
}

// ---- One row and one head -------------------------------------------------------------------------------------------

struct Row {
  float max = -kInfinity, sum = 0, log_sum_exp = -kInfinity;
  std::vector<float> out, weight;
};

bool sees(const Problem& problem, const QueryRow& row, std::int64_t j) {
  const Mask& mask = problem.mask;
  const Sequence& sequence = problem.sequences[row.sequence];
  if (!sequence.visible.empty() && sequence.visible[j] == 0) return false;
  if (mask.causal && j > row.position) return false;
  return mask.window_left < 0 || j > row.position - mask.window_left;
}

// Scale, softcap, bias, edits, mask: in this order.
float score_of(const Problem& problem, std::int64_t r, std::int64_t h, std::int64_t j) {
  const QueryRow& row = problem.rows[r];
  const auto [rows, heads, channels] = problem.q.shape;
  float s = 0;
  for (std::int64_t d = 0; d < channels; ++d) {
    s = std::fma(stored(problem.sequences[row.sequence].k, j, h / (heads / problem.kv_heads), d), problem.q(r, h, d),
                 s);
  }
  s *= problem.scale ? *problem.scale : 1.0f / std::sqrt(static_cast<float>(channels));
  if (problem.softcap > 0) s = problem.softcap * canonical_tanh(s / problem.softcap);
  if (problem.mask.bias.data != nullptr) s += problem.mask.bias(r, h, j);
  for (const EdgeEdit& edge : problem.mask.edges) {
    if (edge.row == r && edge.head == h && j >= edge.key_begin && j < edge.key_end) s += edge.add;
  }
  return sees(problem, row, j) ? s : -kInfinity;
}

// What a block of keys, or a sink, adds to what came before. `values` are the block's own sums.
void merge(Row& row, float max, float sum, const std::vector<float>& values) {
  if (sum == 0) return;  // nothing was seen
  const float both = std::max(row.max, max);
  const float before = canonical_exp(row.max - both), block = canonical_exp(max - both);
  row.max = both;
  row.sum = std::fma(row.sum, before, sum * block);
  for (std::size_t e = 0; e < values.size(); ++e) row.out[e] = std::fma(row.out[e], before, values[e] * block);
}

Row canonical(const Problem& problem, std::int64_t r, std::int64_t h) {
  const Sequence& sequence = problem.sequences[problem.rows[r].sequence];
  const std::int64_t g = h / (problem.q.shape[1] / problem.kv_heads);
  Row row;
  row.out.assign(static_cast<std::size_t>(problem.value_channels), 0);
  std::vector<float> scores;
  for (std::int64_t j = 0; j < sequence.length; ++j) scores.push_back(score_of(problem, r, h, j));
  for (std::int64_t first = 0; first < sequence.length; first += 128) {
    const std::int64_t end = std::min(first + 128, sequence.length);
    float max = -kInfinity, sum = 0;
    for (std::int64_t j = first; j < end; ++j) max = std::max(max, scores[j]);
    max += 0.0f;  // of -0 and +0 always +0
    std::vector<float> values(row.out.size(), 0);
    for (std::int64_t j = first; j < end; ++j) {
      if (scores[j] == -kInfinity) continue;
      const float p = canonical_exp(scores[j] - max);
      sum += p;
      for (std::int64_t e = 0; e < problem.value_channels; ++e)
        values[e] = std::fma(stored(sequence.v, j, g, e), p, values[e]);
    }
    merge(row, max, sum, values);
  }
  if (!problem.sinks.empty() && problem.sinks[h] != -kInfinity) {
    merge(row, problem.sinks[h], 1, std::vector<float>(row.out.size(), 0));
  }
  row.log_sum_exp = row.max + canonical_log(row.sum);
  for (float& out : row.out) out = row.sum == 0 ? 0 : out / row.sum + 0.0f;
  for (float score : scores) {
    row.weight.push_back(score == -kInfinity ? 0 : canonical_exp(score - row.max) * (1 / row.sum));
  }
  return row;
}

void expect_canonical(const Problem& problem) {
  const auto [rows, heads, unused] = problem.q.shape;
  std::vector<Row> all;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) all.push_back(canonical(problem, r, h));
  }
  on_every_form([&, rows = rows, heads = heads](const std::string& form) {
    const Result result = run(problem);
    const Tensor<float, 3> weight = read_pattern(problem, result);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t h = 0; h < heads; ++h) {
        SCOPED_TRACE(form + ", row " + std::to_string(r) + ", head " + std::to_string(h));
        const Row& expected = all[static_cast<std::size_t>(r * heads + h)];
        const auto same = [](float a, float b) {
          return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
        };
        ASSERT_PRED2(same, result.softmax(r, h).max, expected.max);
        ASSERT_PRED2(same, result.softmax(r, h).sum, expected.sum);
        ASSERT_PRED2(same, result.log_sum_exp(r, h), expected.log_sum_exp);
        for (std::size_t e = 0; e < expected.out.size(); ++e) ASSERT_PRED2(same, result.out(r, h, e), expected.out[e]);
        for (std::size_t j = 0; j < expected.weight.size(); ++j)
          ASSERT_PRED2(same, weight(r, h, j), expected.weight[j]) << "key " << j;
      }
    }
  });
}

TEST(CanonicalOrder, ToTheBit) {
  for (const std::int64_t queries : {1, 3, 14}) {
    for (const std::int64_t length : {0, 1, 127, 128, 129, 400}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        Shape shape = shape_of(queries, length, 4, 2, 19, 13);
        shape.dtype = dtype;
        shape.spread = 3;
        const TestProblem made(shape);
        expect_canonical(made.problem);
      }
    }
  }
}

TEST(CanonicalOrder, WithEverythingThatChangesAScore) {
  for (const std::int64_t queries : {1, 14}) {
    Shape shape = shape_of(queries, 400, 6, 2, 24, 8);
    shape.spread = 3;
    TestProblem made(shape);
    made.problem.mask.causal = true;
    made.problem.mask.window_left = 300;
    made.problem.softcap = 4;
    made.problem.scale = 0.3f;
    made.sinks({0.5f, -1, 9, -kInfinity, -0.0f, 3});
    std::vector<std::uint8_t> visible(400, 1);
    for (std::size_t j = 0; j < 400; j += 5) visible[j] = 0;
    std::fill(visible.begin() + 128, visible.begin() + 256, 0);
    made.visible(0, visible);
    Tensor<float, 3> bias({queries, 6, 400});
    for (std::int64_t i = 0; i < bias.size(); ++i)
      bias.data()[i] = i % 9 == 0 ? -kInfinity : 0.07f * static_cast<float>(i % 31);
    made.bias(std::move(bias));
    made.edges({{0, 1, 100, 300, 0.3f}, {0, 1, 300, 310}, {0, 5, 0, 400, -0.2f}});
    expect_canonical(made.problem);
  }
}

}  // namespace
}  // namespace regard::test
