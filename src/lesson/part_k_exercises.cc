// Three questions to answer with a pencil.

#include <fmt/format.h>

#include "lesson/parts.h"
#include "lesson/worked_head.h"

namespace regard {
namespace {

Rational sum_of(const std::vector<Rational>& items) {
  Rational sum = 0;
  for (const Rational& item : items) sum = sum + item;
  return sum;
}

std::vector<Rational> row(const RationalMatrix& matrix, std::int64_t r) {
  return {matrix.items.begin() + r * matrix.columns, matrix.items.begin() + (r + 1) * matrix.columns};
}

std::string listed(const std::vector<Rational>& items) {
  std::string text;
  for (const Rational& item : items) text += (text.empty() ? "" : ", ") + item.text();
  return text;
}

void ask(Exercise& exercise, const std::string& letter, const std::vector<Rational>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    exercise.answers.push_back({values.size() == 1 ? letter : fmt::format("{}{}", letter, i + 1), values[i]});
}

// The powers of 2 of one row of scores, from its weights: all over the smallest.
std::vector<Rational> exponentials(const RationalMatrix& q, const RationalMatrix& k, std::int64_t r,
                                   std::int64_t seen) {
  const RationalMatrix scores = q * transposed(k);
  std::vector<Rational> result;
  for (std::int64_t j = 0; j < seen; ++j) result.push_back(power_of_two(scores(r, j)));
  return result;
}

Exercise new_query() {
  WorkedHead head = worked_head();
  head.xq = {1, 2, {2, 0}};
  const WorkedResult worked = work(head);
  const std::vector<Rational> powers = exponentials(head.xq, head.xk, 0, 3);
  Exercise exercise{
      .id = "new_query",
      .question =
          {"A new query q = [2, 0] reads the three tokens of step b, with the same keys and values. What "
           "are its weights w1, w2, w3, and what is its output o1, o2?",
           "一个新的查询 q = [2, 0] 读第 b 步的三个词元，键和值不变。它的权重 w1、w2、w3 是多少？输出 o1、o2 是多少？"},
      .answers = {},
      .hints = {{"A scaled score here is the dot product of q with the token, times ln 2.",
                 "这里缩放后的分数，就是 q 与词元的点积再乘 ln 2。"},
                {"The exponential of n ln 2 is 2 to the n. Divide by the sum.",
                 "n ln 2 取指数是 2 的 n 次方，再除以总和。"}},
      .way = {}};
  ask(exercise, "w", row(worked.exact_weights, 0));
  ask(exercise, "o", row(worked.exact_outputs, 0));
  exercise.way = {{fmt::format("Exponentials: {}; their sum is {}.", listed(powers), sum_of(powers).text()),
                   fmt::format("取指数：{}；总和 {}。", listed(powers), sum_of(powers).text())},
                  {fmt::format("Weights: {}.", listed(row(worked.exact_weights, 0))),
                   fmt::format("权重：{}。", listed(row(worked.exact_weights, 0)))},
                  {fmt::format("Output: the weights times the rows of V, {}.", listed(row(worked.exact_outputs, 0))),
                   fmt::format("输出：权重乘 V 的各行，{}。", listed(row(worked.exact_outputs, 0)))}};
  return exercise;
}

Exercise masked_row() {
  WorkedHead head = worked_head({3, 2, {1, 1, 1, 0, 0, 1}});
  const WorkedResult open = work(head);
  head.causal = true;
  const WorkedResult worked = work(head);
  const std::vector<Rational> powers = exponentials(head.xq, head.xk, 1, 2), all = exponentials(head.xq, head.xk, 1, 3);
  const Rational kept = open.exact_weights(1, 0) + open.exact_weights(1, 1);
  Exercise exercise{
      .id = "masked_row",
      .question =
          {"The same tokens in another order: [1, 1], [1, 0], [0, 1], with the causal mask. What are the weights w1, "
           "w2, "
           "w3 of row 2 and its output o1, o2? And if one cut after the softmax instead: what would be the sum s of "
           "the weights that are left?",
           "同样的词元换个顺序：[1, 1]、[1, 0]、[0, 1]，加因果掩码。第 2 行的权重 w1、w2、w3 与输出 o1、o2 是多少？"
           "如果改在 softmax 之后才去掉，剩下的权重之和 s 是多少？"},
      .answers = {},
      .hints = {{"Row 2 may read positions 1 and 2 only; the exponential of -∞ is 0.",
                 "第 2 行只能读位置 1 和 2；-∞ 取指数是 0。"},
                {"For s, take the softmax over all three positions first.", "求 s 时，先对三个位置一起做 softmax。"}},
      .way = {}};
  ask(exercise, "w", row(worked.exact_weights, 1));
  ask(exercise, "o", row(worked.exact_outputs, 1));
  ask(exercise, "s", {kept});
  exercise.way = {
      {fmt::format("Exponentials of what row 2 sees: {}; weights {}.", listed(powers),
                   listed(row(worked.exact_weights, 1))),
       fmt::format("第 2 行看得到的，取指数：{}；权重 {}。", listed(powers), listed(row(worked.exact_weights, 1)))},
      {fmt::format("Output: {}.", listed(row(worked.exact_outputs, 1))),
       fmt::format("输出：{}。", listed(row(worked.exact_outputs, 1)))},
      {fmt::format("All three exponentials are {}; without the last, {} is left.", listed(all), kept.text()),
       fmt::format("三个指数是 {}；去掉最后一个，剩下 {}。", listed(all), kept.text())}};
  return exercise;
}

Exercise one_path() {
  RationalMatrix changed = worked_tokens();
  changed(0, 0) = 2;
  WorkedHead by_key = worked_head(), by_value = worked_head();
  by_key.xk = changed;
  by_value.xv = changed;
  const WorkedResult key = work(by_key), value = work(by_value);
  Exercise exercise{
      .id = "one_path",
      .question = {"Position 1 becomes [2, 0]; the query of position 3 stays [1, 1]. What is the output k1, k2 of "
                   "position 3 if "
                   "only the key of position 1 changes, and v1, v2 if only its value does?",
                   "位置 1 改成 [2, 0]，位置 3 的查询仍是 [1, 1]。如果只有位置 1 的键变，位置 3 的输出 k1、k2 "
                   "是多少？如果只有它的值变，"
                   "v1、v2 是多少？"},
      .answers = {},
      .hints = {{"The key alone: new weights, old values.", "只换键：权重是新的，值是旧的。"},
                {fmt::format("The value alone: the weights stay {}.", listed(row(value.exact_weights, 2))),
                 fmt::format("只换值：权重仍是 {}。", listed(row(value.exact_weights, 2)))}},
      .way = {}};
  ask(exercise, "k", row(key.exact_outputs, 2));
  ask(exercise, "v", row(value.exact_outputs, 2));
  exercise.way = {
      {fmt::format("Key only: exponentials {}, weights {}, output {}.",
                   listed(exponentials(by_key.xq, by_key.xk, 2, 3)), listed(row(key.exact_weights, 2)),
                   listed(row(key.exact_outputs, 2))),
       fmt::format("只换键：取指数 {}，权重 {}，输出 {}。", listed(exponentials(by_key.xq, by_key.xk, 2, 3)),
                   listed(row(key.exact_weights, 2)), listed(row(key.exact_outputs, 2)))},
      {fmt::format("Value only: weights {}, output {}.", listed(row(value.exact_weights, 2)),
                   listed(row(value.exact_outputs, 2))),
       fmt::format("只换值：权重 {}，输出 {}。", listed(row(value.exact_weights, 2)),
                   listed(row(value.exact_outputs, 2)))}};
  return exercise;
}

// Ways of writing each answer, right and wrong.
void check_ways_of_typing(Exercise& exercise) {
  for (std::size_t i = 0; i < exercise.answers.size(); ++i) {
    const Rational& truth = exercise.answers[i].value;
    const double number = truth.number();
    for (const std::string& typed :
         {truth.text(), fmt::format(" {} ", truth.text()),
          fmt::format("{}/{}", truth.numerator() * 3, truth.denominator() * 3), fmt::format("{:.1f}", number),
          fmt::format("{:.2f}", number), fmt::format("{:.6f}", number), fmt::format("{:.2f}", number + 0.01),
          fmt::format("{:.1f} %", number * 100), fmt::format("{:.0f}%", number * 100), fmt::format("-{}", truth.text()),
          std::string("1/0"), std::string("two"), std::string("0,25"), std::string(".5"), std::string("1.2345678901"),
          std::string("")})
      exercise.checks.push_back({i, typed, check_answer(typed, truth)});
  }
}

}  // namespace

Step exercises(const LessonRequest&) {
  Step step;
  step.blocks.push_back(
      LessonText{"Fractions (2/5), decimals (0.4) and percentages (40 %) are understood; round to two places or more.",
                 "可以写分数（2/5）、小数（0.4）或百分数（40 %）；小数至少取两位。"});
  for (Exercise& exercise : std::vector<Exercise>{new_query(), masked_row(), one_path()}) {
    check_ways_of_typing(exercise);
    Numbers answers{.shape = {std::ssize(exercise.answers)}, .items = {}};
    for (const Exercise::Answer& answer : exercise.answers) answers.items.push_back(exactly(answer.value));
    step.values.emplace_back(exercise.id, std::move(answers));
    step.blocks.push_back(std::move(exercise));
  }
  return step;
}

}  // namespace regard
