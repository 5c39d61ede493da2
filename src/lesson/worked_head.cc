#include "lesson/worked_head.h"

#include <fmt/format.h>

#include "lesson/attend.h"

namespace regard {
namespace {

Tensor<float, 2> to_floats(const RationalMatrix& matrix, double factor = 1) {
  Tensor<float, 2> result({matrix.rows, matrix.columns});
  for (std::size_t i = 0; i < matrix.items.size(); ++i)
    result.data()[i] = static_cast<float>(matrix.items[i].number() * factor);
  return result;
}

bool sees(const WorkedHead& head, std::int64_t row, std::int64_t key) {
  if (!head.visible.empty() && head.visible[static_cast<std::size_t>(key)] == 0) return false;
  return !head.causal || key <= row + head.xk.rows - head.xq.rows;
}

}  // namespace

double worked_key_scale() { return number_of(Factor::sqrt2_ln2); }

Slider key_scale_slider() {
  return {.label = {"c, in units of √2 ln 2", "c（以 √2 ln 2 为单位）"},
          .low = 0,
          .high = 6,
          .step = 0.25,
          .initial = 1,
          .targets = {{.what = "key_scale", .factor = worked_key_scale()}}};
}

RationalMatrix worked_tokens() { return {3, 2, {1, 0, 0, 1, 1, 1}}; }

WorkedHead worked_head() { return worked_head(worked_tokens()); }

WorkedHead worked_head(const RationalMatrix& tokens) {
  const RationalMatrix identity(2, 2, {1, 0, 0, 1});
  return {.xq = tokens, .xk = tokens, .xv = tokens, .wq = identity, .wk = identity, .wv = {2, 2, {2, 0, 0, 1}}};
}

WorkedResult work(const WorkedHead& head) {
  const RationalMatrix q = head.xq * head.wq, k = head.xk * head.wk, v = head.xv * head.wv;
  const RationalMatrix powers = q * transposed(k);  // of 2: c / √2 is ln 2
  RationalMatrix exponentials(powers.rows, powers.columns);
  for (std::int64_t i = 0; i < powers.rows; ++i)
    for (std::int64_t j = 0; j < powers.columns; ++j)
      if (sees(head, i, j)) exponentials(i, j) = power_of_two(powers(i, j));

  const Tensor<float, 2> engine_q = project(to_floats(head.xq).view(), to_floats(head.wq).view());
  const Tensor<float, 2> engine_k = project(to_floats(head.xk).view(), to_floats(head.wk, worked_key_scale()).view());
  const Tensor<float, 2> engine_v = project(to_floats(head.xv).view(), to_floats(head.wv).view());
  const Attended attended =
      attend(engine_q.view(), engine_k.view(), engine_v.view(), {.causal = head.causal, .visible = head.visible});
  WorkedResult result;
  result.exact_weights = exact_softmax(exponentials);
  result.exact_outputs = result.exact_weights * v;
  result.q = numbers(engine_q.view(), q);
  result.k = numbers(engine_k.view(), k, Factor::sqrt2_ln2);
  result.v = numbers(engine_v.view(), v);
  result.scores = numbers(one_head(attended.scores), powers, Factor::ln2);
  for (std::int64_t i = 0; i < powers.rows; ++i)
    for (std::int64_t j = 0; j < powers.columns; ++j)
      if (!sees(head, i, j)) result.scores.items[static_cast<std::size_t>(i * powers.columns + j)].exact.reset();
  result.weights = numbers(one_head(attended.weights), result.exact_weights);
  result.outputs = numbers(one_head(attended.outputs), result.exact_outputs);
  return result;
}

SmallMatrix to_small_matrix(const RationalMatrix& matrix) {
  SmallMatrix result{matrix.rows, matrix.columns, {}};
  for (const Rational& item : matrix.items) result.items.push_back(item.number());
  return result;
}

SmallHead to_small_head(const WorkedHead& head) {
  SmallHead result;
  result.xq = to_small_matrix(head.xq);
  result.xk = to_small_matrix(head.xk);
  result.xv = to_small_matrix(head.xv);
  result.wq = to_small_matrix(head.wq);
  result.wk = to_small_matrix(head.wk);
  result.wv = to_small_matrix(head.wv);
  result.scale = number_of(Factor::inverse_sqrt2);
  result.key_scale = worked_key_scale();
  result.causal = head.causal;
  return result;
}

std::vector<std::string> numbered(const std::string& letter, std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 1; i <= count; ++i) names.push_back(fmt::format("{}{}", letter, i));
  return names;
}

}  // namespace regard
