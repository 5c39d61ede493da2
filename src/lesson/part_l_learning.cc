// How the three matrices are learned: one step of gradient descent, by hand.

#include <fmt/format.h>

#include "lesson/attend.h"
#include "lesson/learning.h"
#include "lesson/parts.h"
#include "lesson/worked_head.h"

namespace regard {
namespace {

Numbers beside(const SmallMatrix& values, const RationalMatrix& exact, Factor factor = Factor::one) {
  Numbers result = numbers(values.items, {values.rows, values.columns});
  for (std::size_t i = 0; i < result.items.size(); ++i) result.items[i].exact = Exact{exact.items[i], factor};
  return result;
}

// The same chain rule in fractions, beside the factors that it picks up: k / √2 is x times ln 2, and q / √2 is x / √2.
struct ExactStep {
  RationalMatrix d_output, d_weights, d_scores, d_v, d_q, d_k, d_wq, d_wk, d_wv;
  Rational loss = 0;
};

ExactStep exact_step(const WorkedHead& head, const WorkedResult& forward, const RationalMatrix& target) {
  ExactStep back;
  const RationalMatrix& p = forward.exact_weights;
  back.d_output = RationalMatrix(1, 2);
  for (std::int64_t e = 0; e < 2; ++e) {
    back.d_output(0, e) = forward.exact_outputs(0, e) - target(0, e);
    back.loss = back.loss + back.d_output(0, e) * back.d_output(0, e) / Rational(2);
  }
  back.d_weights = back.d_output * transposed(head.xv * head.wv);
  back.d_v = transposed(p) * back.d_output;
  const Rational mean = (p * transposed(back.d_weights))(0, 0);
  back.d_scores = p;
  for (std::int64_t j = 0; j < p.columns; ++j) back.d_scores(0, j) = p(0, j) * (back.d_weights(0, j) - mean);
  back.d_q = back.d_scores * (head.xk * head.wk);
  back.d_k = transposed(back.d_scores) * (head.xq * head.wq);
  back.d_wq = transposed(head.xq) * back.d_q;
  back.d_wk = transposed(head.xk) * back.d_k;
  back.d_wv = transposed(head.xv) * back.d_v;
  return back;
}

}  // namespace

Step one_training_step(const LessonRequest&) {
  Step step;
  WorkedHead head = worked_head();
  head.xq = {1, 2, {1, 1}};
  const RationalMatrix target(1, 2, {1, 1});
  const Rational rate(1, 2);
  const WorkedResult forward = work(head);
  const ExactStep exact = exact_step(head, forward, target);

  SmallHead small = to_small_head(head);
  small.wk = key_weights(small);
  small.key_scale = 1;
  const HeadGradients back = gradients(small, to_small_matrix(target));
  const SmallHead after = stepped(small, back, rate.number());
  const SmallHeadResult result = run(after);
  const double loss_after = loss_of(after, to_small_matrix(target));

  const Number loss{back.loss, Exact{exact.loss}};
  const Numbers d_output = beside(back.d_output, exact.d_output), d_weights = beside(back.d_weights, exact.d_weights),
                d_scores = beside(back.d_scores, exact.d_scores), d_v = beside(back.d_v, exact.d_v),
                d_q = beside(back.d_q, exact.d_q, Factor::ln2),
                d_k = beside(back.d_k, exact.d_k, Factor::inverse_sqrt2),
                d_wq = beside(back.d_wq, exact.d_wq, Factor::ln2),
                d_wk = beside(back.d_wk, exact.d_wk, Factor::inverse_sqrt2), d_wv = beside(back.d_wv, exact.d_wv);
  RationalMatrix new_wv = head.wv;
  for (std::size_t i = 0; i < new_wv.items.size(); ++i) new_wv.items[i] = new_wv.items[i] - rate * exact.d_wv.items[i];
  const auto plain = [](const SmallMatrix& m) { return numbers(m.items, {m.rows, m.columns}); };
  const Numbers wq = plain(after.wq), wk = plain(after.wk), wv = beside(after.wv, new_wv);

  step.blocks.push_back(LessonText{
      fmt::format("Nobody sets W_Q, W_K and W_V; they are learned. Position 3 gives {}, and should give {}. The loss "
                  "is half the "
                  "squared distance: {}.",
                  forward.outputs.row_fractions(0), exactly(target).row_fractions(0), loss.both()),
      fmt::format("W_Q、W_K、W_V 不是谁定的，是学出来的。位置 3 现在给出 {}，应该给出 {}。损失是距离平方的一半：{}。",
                  forward.outputs.row_fractions(0), exactly(target).row_fractions(0), loss.both())});
  step.blocks.push_back(
      FlowChart{.caption = {"The way back: each arrow is one use of the chain rule", "往回走：每一步都是一次链式法则"},
                .boxes = {{{"loss", "损失"}, loss.text()},
                          {{"output", "输出"}, d_output.row_fractions(0)},
                          {{"weighted sum", "加权和"}, d_weights.row_fractions(0)},
                          {{"softmax", "softmax"}, d_scores.row_fractions(0)},
                          {{"dot product", "点积"}, d_q.row_fractions(0)},
                          {{"projections", "投影"}, "W_Q, W_K, W_V"}}});
  step.blocks.push_back(LessonText{
      fmt::format(
          "Through the weighted sum: a weight matters by how far its value points along the error, {}. Each value gets "
          "the error times its weight.",
          d_weights.row_fractions(0)),
      fmt::format("经过加权和：一个权重有多要紧，看它的值沿误差方向有多远，{}。每个值分到的是误差乘自己的权重。",
                  d_weights.row_fractions(0))});
  step.blocks.push_back(LessonText{
      fmt::format(
          "Through the softmax: weights compete, so from each the weighted mean is taken off, and what is left counts "
          "by the weight: {}. These add up to 0: what one key gains, others lose. A weight near 0 or 1 lets nothing "
          "through (step e).",
          d_scores.row_fractions(0)),
      fmt::format("经过 softmax：权重互相竞争，所以各自先减去加权平均，再乘自己的权重：{}。它们加起来是 "
                  "0：一个键多得的，就是别的键失去的。"
                  "权重接近 0 或 1 时几乎什么也传不过去（第 e 步）。",
                  d_scores.row_fractions(0))});
  step.blocks.push_back(
      LessonText{"Through the dot product: the query is pulled by the keys, each key by the query. And through the "
                 "three projections, "
                 "into the matrices:",
                 "经过点积：查询被各个键拉动，每个键被查询拉动。最后经过三个投影，到达三个矩阵："});
  step.blocks.push_back(MatrixRow{.caption = {"Gradients of queries, keys and values", "查询、键、值的梯度"},
                                  .matrices = {{.name = same("∂q"), .numbers = d_q, .rows = {}, .columns = {}},
                                               {.name = same("∂K"), .numbers = d_k, .rows = {}, .columns = {}},
                                               {.name = same("∂V"), .numbers = d_v, .rows = {}, .columns = {}}}});
  step.blocks.push_back(MatrixRow{.caption = {"Gradients of the three matrices", "三个矩阵的梯度"},
                                  .matrices = {{.name = same("∂W_Q"), .numbers = d_wq, .rows = {}, .columns = {}},
                                               {.name = same("∂W_K"), .numbers = d_wk, .rows = {}, .columns = {}},
                                               {.name = same("∂W_V"), .numbers = d_wv, .rows = {}, .columns = {}}}});
  step.blocks.push_back(MatrixRow{.caption = {fmt::format("After one step of size {}", rate.text()),
                                              fmt::format("走一步（步长 {}）之后", rate.text())},
                                  .matrices = {{.name = same("W_Q"), .numbers = wq, .rows = {}, .columns = {}},
                                               {.name = same("W_K"), .numbers = wk, .rows = {}, .columns = {}},
                                               {.name = same("W_V"), .numbers = wv, .rows = {}, .columns = {}}}});
  const Numbers weights_after = plain(result.weights), output_after = plain(result.outputs);
  step.blocks.push_back(LessonText{
      fmt::format("With the new matrices the weights are {}, the output is {}, and the loss falls from {} to {}. "
                  "Training is this "
                  "step, a great many times, over all rows of all texts at once.",
                  weights_after.row_text(0), output_after.row_text(0), loss.decimal(), decimal(loss_after)),
      fmt::format(
          "用新的矩阵，权重是 {}，输出是 {}，损失从 {} 降到 {}。训练就是把这一步对所有文本的所有行重复很多很多次。",
          weights_after.row_text(0), output_after.row_text(0), loss.decimal(), decimal(loss_after))});
  Exploration explore{
      .id = "learning",
      .caption =
          {"How large should the step be? A small one learns slowly; one that is too large lands on the other side.",
           "步子该迈多大？小了学得慢，太大就跨到另一边去了。"},
      .readers = {"q3"},
      .keys = numbered("k", 3),
      .head = small,
      .sliders = {{.label = {"size of the step", "步长"},
                   .low = 0,
                   .high = 4,
                   .step = 0.125,
                   .initial = rate.number(),
                   .targets = {{.what = "rate"}}}},
      .checks = {}};
  explore.head.target = to_small_matrix(target);
  check_on_a_grid(explore, 33);
  step.blocks.push_back(std::move(explore));
  const auto single = [](const Number& number) { return Numbers{.shape = {}, .items = {number}}; };
  step.values = {{"target", exactly(target)},
                 {"rate", single(exactly(rate))},
                 {"loss", single(loss)},
                 {"weights", forward.weights},
                 {"output", forward.outputs},
                 {"d_output", d_output},
                 {"d_weights", d_weights},
                 {"d_scores", d_scores},
                 {"d_q", d_q},
                 {"d_k", d_k},
                 {"d_v", d_v},
                 {"d_w_q", d_wq},
                 {"d_w_k", d_wk},
                 {"d_w_v", d_wv},
                 {"w_q_after", wq},
                 {"w_k_after", wk},
                 {"w_v_after", wv},
                 {"weights_after", weights_after},
                 {"output_after", output_after},
                 {"loss_after", single({loss_after, {}})}};
  return step;
}

}  // namespace regard
