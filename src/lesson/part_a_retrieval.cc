// Scores, softmax, weights, the weighted sum: attention with a single query.

#include <fmt/format.h>

#include <cmath>

#include "lesson/attend.h"
#include "lesson/parts.h"
#include "lesson/worked_head.h"

namespace regard {
namespace {

// A head whose query is 1 and whose keys are the scores themselves.
SmallHead given_scores(const std::vector<double>& scores, const SmallMatrix& values) {
  SmallHead head;
  head.xq = head.wq = head.wk = {1, 1, {1}};
  head.xk = {static_cast<std::int64_t>(scores.size()), 1, scores};
  head.xv = values;
  head.wv = {values.columns, values.columns, {}};
  for (std::int64_t r = 0; r < values.columns; ++r)
    for (std::int64_t c = 0; c < values.columns; ++c) head.wv.items.push_back(r == c);
  return head;
}

Numbers with_exact(const SmallMatrix& values, const RationalMatrix& exact) {
  return numbers(to_tensor(values).view(), exact);
}

void add_three_scores(Step& step) {
  const RationalMatrix scores(1, 3, {3, 1, 0});
  const SmallHead head = given_scores({3, 1, 0}, {3, 2, {1, 0, 0, 1, 1, 1}});
  const SmallHeadResult result = run(head);
  Numbers weights = numbers(to_tensor(result.weights).view());
  const auto rounded = [&](std::int64_t i) { return fmt::format("{:.2f}", weights(0, i).value); };
  step.blocks.push_back(LessonText{
      "A position that reads asks a question, its query. Every position that can be read carries a key. How well a key "
      "answers the query is one number, the score. The scores become weights: each is put into the exponential "
      "function, "
      "so that all are positive, and divided by the sum of all, so that together they are 1. That is the softmax.",
      "读取信息的位置带着一个问题，叫作查询（query）；每个可以被读的位置都带着一个键（key）。键与查询有多匹配，用一个数"
      "表示，就是分数。"
      "分数再变成权重：先取指数，使它们都为正；再除以总和，使它们加起来等于 1。这就是 softmax。"});
  step.blocks.push_back(BarChart{
      .caption =
          {fmt::format("Scores 3, 1 and 0 become the weights {}, {} and {} (rounded; together they are 1). One more "
                       "point of score multiplies a weight by e = {} beside the others.",
                       rounded(0), rounded(1), rounded(2), decimal(std::exp(1))),
           fmt::format(
               "分数 3、1、0 变成权重 {}、{}、{}（四舍五入，合起来是 1）。分数每多 1，这个权重相对其他就乘以 e = {}。",
               rounded(0), rounded(1), rounded(2), decimal(std::exp(1)))},
      .labels = numbered("k", 3),
      .series = {{{"score", "分数"}, exactly(scores)}, {{"weight", "权重"}, weights}}});
  Exploration explore{
      .id = "scores",
      .caption = {"Move the scores. Only differences between them matter; the temperature divides them all.",
                  "移动各个分数：起作用的只是它们之间的差。温度则把所有分数同除以一个数。"},
      .readers = {"q"},
      .keys = numbered("k", 3),
      .head = head,
      .sliders = {},
      .checks = {}};
  for (std::int64_t i = 0; i < 3; ++i)
    explore.sliders.push_back({.label = {fmt::format("score of k{}", i + 1), fmt::format("k{} 的分数", i + 1)},
                               .low = -4,
                               .high = 6,
                               .step = 0.5,
                               .initial = scores(0, i).number(),
                               .targets = {{.what = "xk", .row = i}}});
  explore.sliders.push_back({.label = {"temperature", "温度"},
                             .low = 0.25,
                             .high = 4,
                             .step = 0.25,
                             .initial = 1,
                             .targets = {{.what = "temperature"}}});
  check_on_a_grid(explore, 3);
  step.blocks.push_back(std::move(explore));
  step.values.emplace_back("scores", exactly(scores));
  step.values.emplace_back("weights", std::move(weights));
}

void add_four_keys(Step& step) {
  const std::vector<std::string> words = {"cat", "sat", "because", "The"};
  const RationalMatrix exponentials(1, 4, {10, 6, 3, 1}), values(4, 2, {1, 0, 0, 1, 1, 1, 0, 0});
  std::vector<double> scores;
  for (const Rational& item : exponentials.items) scores.push_back(std::log(item.number()));
  const SmallHeadResult result = run(given_scores(scores, to_small_matrix(values)));
  const RationalMatrix exact = exact_softmax(exponentials);
  Numbers weights = with_exact(result.weights, exact), output = with_exact(result.outputs, exact * values);
  step.blocks.push_back(LessonText{
      fmt::format(
          "Each position also carries a value, what it hands on. The reader gets the sum of all values, each times "
          "its weight. Here “it” reads four words with scores ln 10, ln 6, ln 3 and ln 1: the exponentials are 10, "
          "6, 3 and 1, their sum is 20, and the weights are {}.",
          weights.row_fractions(0)),
      fmt::format("每个位置还带着一个值（value），也就是它交出去的内容。读取者得到的是所有值按权重相加的结果。这里“it”"
                  "读四个词，"
                  "分数是 ln 10、ln 6、ln 3、ln 1：取指数得 10、6、3、1，总和 20，权重就是 {}。",
                  weights.row_fractions(0))});
  step.blocks.push_back(ReadsPicture{.caption = {"Who is read, and how much: a line is as thick as its weight.",
                                                 "读了谁、读了多少：线越粗，权重越大。"},
                                     .readers = {"it"},
                                     .keys = words,
                                     .weights = weights});
  step.blocks.push_back(
      MatrixRow{.caption = {"weights × values = output", "权重 × 值 = 输出"},
                .matrices = {{.name = {"weights", "权重"}, .numbers = weights, .rows = {"it"}, .columns = words},
                             {.name = {"values", "值"}, .numbers = exactly(values), .rows = words, .columns = {}},
                             {.name = {"output", "输出"}, .numbers = output, .rows = {"it"}, .columns = {}}}});
  step.values.emplace_back("four_weights", std::move(weights));
  step.values.emplace_back("four_output", std::move(output));
}

}  // namespace

Step one_retrieval(const LessonRequest&) {
  Step step;
  add_three_scores(step);
  add_four_keys(step);
  return step;
}

}  // namespace regard
