// Every kind of problem, at random, against the float64 reference, on every form: law 1.

#include <gtest/gtest.h>

#include "attention/support.h"

namespace regard::test {
namespace {

std::int64_t pick(std::mt19937& random, std::initializer_list<std::int64_t> choices) {
  return choices.begin()[random() % choices.size()];
}

// A problem in which everything is drawn at random.
std::unique_ptr<TestProblem> draw(unsigned seed) {
  std::mt19937 random(seed);
  Shape shape;
  shape.seed = seed;
  shape.queries.clear();
  shape.lengths.clear();
  const int sequences = static_cast<int>(pick(random, {1, 1, 2, 3}));
  for (int i = 0; i < sequences; ++i) {
    shape.lengths.push_back(pick(random, {0, 1, 3, 17, 127, 128, 129, 300}));
    shape.queries.push_back(pick(random, {0, 1, 2, 5, 13, 40}));
  }
  shape.kv_heads = pick(random, {1, 2, 3});
  shape.heads = shape.kv_heads * pick(random, {1, 1, 2, 3, 5});
  shape.channels = pick(random, {1, 3, 8, 16, 20, 33});
  shape.value_channels = pick(random, {1, 2, 5, 8, 12, 16, 19, 32});
  shape.dtype = std::array{DType::f32, DType::f32, DType::f16, DType::bf16}[random() % 4];
  shape.layout = static_cast<Layout>(random() % 6);
  shape.page_rows = pick(random, {1, 2, 7, 128, 200});
  shape.spread = std::array{1.0f, 4.0f}[random() % 2];
  auto made = std::make_unique<TestProblem>(shape);
  Problem& problem = made->problem;
  Mask& mask = problem.mask;
  mask.causal = random() % 2;
  if (random() % 3 == 0) mask.window_left = pick(random, {1, 2, 30, 128, 129});
  if (random() % 3 == 0) mask.window_right = pick(random, {0, 1, 40});
  if (random() % 4 == 0) problem.scale = std::array{0.0f, -0.7f, 1.0f, 0.1f}[random() % 4];
  if (random() % 4 == 0) problem.softcap = std::array{0.5f, 5.0f, 50.0f}[random() % 3];
  std::normal_distribution<float> normal;
  if (random() % 3 == 0) {
    std::vector<float> sinks(shape.heads);
    for (float& sink : sinks) sink = random() % 5 == 0 ? -kInfinity : normal(random);
    made->sinks(sinks);
  }
  for (QueryRow& row : made->query_rows) {
    if (random() % 8 == 0) row.position += static_cast<std::int64_t>(random() % 400) - 200;
    row.segment = static_cast<std::int32_t>(random() % 4);
  }
  for (std::size_t i = 0; i < shape.lengths.size(); ++i) {
    const auto length = static_cast<std::size_t>(shape.lengths[i]);
    if (random() % 3 == 0) {
      std::vector<std::uint8_t> visible(length);
      const auto share = 1 + random() % 4;
      for (auto& key : visible) key = random() % share == 0 ? 0 : 2;
      made->visible(i, visible);
    }
    if (random() % 3 == 0) {
      std::vector<std::int32_t> segment(length);
      const bool runs = random() % 2;
      for (std::size_t j = 0; j < length; ++j)
        segment[j] = static_cast<std::int32_t>(runs ? j * 3 / length : random() % 3);
      made->segments(i, segment);
    }
  }
  std::int64_t longest = 0;
  for (std::int64_t length : shape.lengths) longest = std::max(longest, length);
  const std::int64_t rows = problem.q.shape[0];
  if (random() % 3 == 0) {
    Tensor<float, 3> bias({random() % 2 ? rows : 1, random() % 2 ? shape.heads : 1, longest});
    for (float& b : std::span(bias.data(), bias.size())) b = random() % 7 == 0 ? -kInfinity : normal(random);
    made->bias(std::move(bias));
    View<const float, 3>& view = mask.bias;
    if (view.shape[0] == 1) view = {view.data, {rows, view.shape[1], longest}, {0, view.stride[1], 1}};
    if (view.shape[1] == 1) view = {view.data, {rows, shape.heads, longest}, {view.stride[0], 0, 1}};
    if (longest == 0) view = {};
  }
  if (random() % 3 == 0) {
    std::vector<EdgeEdit> edges;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int32_t h = 0; h < shape.heads; ++h) {
        std::int64_t key = 0;
        const std::int64_t length = shape.lengths[made->query_rows[r].sequence];
        while (random() % 2 == 0) {
          const std::int64_t begin = key + static_cast<std::int64_t>(random() % 40);
          const std::int64_t end = begin + 1 + static_cast<std::int64_t>(random() % 150);
          if (end > length) break;
          edges.push_back({r, h, begin, end, random() % 2 ? -kInfinity : normal(random)});
          key = end;
        }
      }
    }
    made->edges(edges);
  }
  return made;
}

TEST(Attention, AgreesWithTheReferenceOnEveryForm) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const auto made = draw(seed);
    const ReferenceAttention truth = reference_attention(made->problem);
    const Errors limit = allowed(made->problem, truth);
    std::optional<Result> first;
    std::optional<Tensor<float, 3>> first_weights;
    on_every_form([&](const std::string& form) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " on " + form);
      Result result = run(made->problem);
      Tensor<float, 3> weight = pattern(made->problem, result);
      const Errors errors = errors_of(result, weight, truth);
      EXPECT_LE(errors.out, limit.out);
      EXPECT_LE(errors.weight, limit.weight);
      EXPECT_LE(errors.log_sum_exp, limit.log_sum_exp);
      if (!first) {
        first = std::move(result);
        first_weights = std::move(weight);
      } else {
        EXPECT_TRUE(same_bits(*first, result));
        EXPECT_TRUE(same_bits(*first_weights, weight));
      }
    });
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace regard::test
