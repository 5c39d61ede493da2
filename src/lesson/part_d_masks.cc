// Who may be read, and what that saves.

#include <fmt/format.h>

#include <cstring>

#include "lesson/attend.h"
#include "lesson/parts.h"
#include "lesson/worked_head.h"

namespace regard {
namespace {

// What one gets who takes the weights of all keys, and then strikes out those of later positions.
struct Cut {
  Numbers weights, sums, outputs;
};

Cut cut_after_softmax(const WorkedResult& open, const RationalMatrix& values) {
  const std::int64_t n = open.exact_weights.rows;
  Cut cut{.weights = open.weights, .sums = {.shape = {n}, .items = {}}, .outputs = {}};
  RationalMatrix exact = open.exact_weights;
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    Rational exact_sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      if (j > i) {
        exact(i, j) = 0;
        cut.weights.items[static_cast<std::size_t>(i * n + j)] = exactly(0);
      }
      sum += cut.weights(i, j).value;
      exact_sum = exact_sum + exact(i, j);
    }
    cut.sums.items.push_back({sum, Exact{exact_sum}});
  }
  cut.outputs = exactly(exact * values);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t e = 0; e < values.columns; ++e) {
      double& sum = cut.outputs.items[static_cast<std::size_t>(i * values.columns + e)].value = 0;
      for (std::int64_t j = 0; j < n; ++j) sum += cut.weights(i, j).value * open.v(j, e).value;
    }
  return cut;
}

void add_causal(Step& step) {
  WorkedHead head = worked_head();
  head.causal = true;
  const WorkedResult open = work(worked_head()), masked = work(head);
  const Cut cut = cut_after_softmax(open, head.xv * head.wv);
  const std::vector<std::string> q = numbered("q", 3), k = numbered("k", 3);
  step.blocks.push_back(LessonText{
      fmt::format(
          "A model that writes may not read what comes later. The mask makes those scores -∞ before the softmax; "
          "their exponentials are 0, and the row is divided by the sum of what is left. Row 2 becomes {}, its "
          "output {}.",
          masked.weights.row_fractions(1), masked.outputs.row_fractions(1)),
      fmt::format(
          "往下写的模型不能读后面的内容。掩码在 softmax 之前把那些分数设为 -∞，取指数后是 0，这一行只除以剩下的总和。"
          "第 2 行变成 {}，输出 {}。",
          masked.weights.row_fractions(1), masked.outputs.row_fractions(1))});
  step.blocks.push_back(MatrixRow{
      .caption = {"The causal mask", "因果掩码"},
      .matrices = {{.name = {"scores", "分数"}, .numbers = masked.scores, .rows = q, .columns = k},
                   {.name = {"weights", "权重"}, .numbers = masked.weights, .rows = q, .columns = k},
                   {.name = {"output", "输出"}, .numbers = masked.outputs, .rows = numbered("o", 3), .columns = {}}}});
  step.blocks.push_back(LessonText{
      fmt::format(
          "Cutting after the softmax goes wrong: row 2 would keep {} of its weight, and its output would be {} "
          "instead of {}. Worse, how much is left depends on the scores of positions that may not be known yet.",
          cut.sums.items[1].text(), cut.outputs.row_fractions(1), masked.outputs.row_fractions(1)),
      fmt::format("在 softmax 之后才去掉就错了：第 2 行的权重只剩 {}，输出成了 {}，而不是 "
                  "{}。更糟的是，剩下多少取决于那些本不该知道的位置的分数。",
                  cut.sums.items[1].text(), cut.outputs.row_fractions(1), masked.outputs.row_fractions(1))});
  Table table{.caption = {"Masked before the softmax, and cut after it", "softmax 之前遮住，与之后去掉"},
              .columns = {{"row", "行"},
                          {"sum, masked before", "先遮住：和"},
                          {"output", "输出"},
                          {"sum, cut after", "后去掉：和"},
                          {"output", "输出"}},
              .rows = {}};
  for (std::int64_t i = 0; i < 3; ++i) {
    Rational sum = 0;
    for (std::int64_t j = 0; j < 3; ++j) sum = sum + masked.exact_weights(i, j);
    table.rows.push_back({same(fmt::format("{}", i + 1)), exactly(sum), same(masked.outputs.row_fractions(i)),
                          cut.sums.items[static_cast<std::size_t>(i)], same(cut.outputs.row_fractions(i))});
  }
  step.blocks.push_back(std::move(table));
  Exploration explore{
      .id = "mask",
      .caption = {"Switch the mask on and off, and make the head sharper.", "打开或关闭掩码，再改变尖锐程度。"},
      .readers = q,
      .keys = k,
      .head = to_small_head(head),
      .sliders = {{.label = {"causal mask", "因果掩码"},
                   .low = 0,
                   .high = 1,
                   .step = 1,
                   .initial = 1,
                   .targets = {{.what = "causal"}}},
                  key_scale_slider()},
      .checks = {}};
  check_on_a_grid(explore, 2);
  step.blocks.push_back(std::move(explore));
  step.values.emplace_back("causal_weights", masked.weights);
  step.values.emplace_back("causal_outputs", masked.outputs);
  step.values.emplace_back("cut_weights", cut.weights);
  step.values.emplace_back("cut_sums", cut.sums);
  step.values.emplace_back("cut_outputs", cut.outputs);
}

void add_padding(Step& step) {
  WorkedHead head = worked_head();
  head.visible = {1, 1, 0};
  const WorkedResult padded = work(head);
  step.blocks.push_back(LessonText{
      "Texts of different lengths are computed together by filling the shorter ones up. What was filled in is masked "
      "as a "
      "key in the same way. Here position 3 is such padding; its own row gives numbers too, which nobody uses.",
      "长度不同的文本一起计算时，短的要补齐。补上的位置作为键同样被遮住。这里位置 3 "
      "就是补齐的；它自己那一行也会算出数来，但没有人用。"});
  step.blocks.push_back(MatrixRow{
      .caption = {"Position 3 is padding", "位置 3 是补齐的"},
      .matrices = {{.name = {"weights", "权重"},
                    .numbers = padded.weights,
                    .rows = numbered("q", 3),
                    .columns = numbered("k", 3)},
                   {.name = {"output", "输出"}, .numbers = padded.outputs, .rows = numbered("o", 3), .columns = {}}}});
  step.values.emplace_back("padding_weights", padded.weights);
  step.values.emplace_back("padding_outputs", padded.outputs);
}

// All rows in one pass, and row by row with the keys and values that are there by then: whether every bit is the same.
bool same_one_by_one() {
  const Tensor<float, 2> x = to_tensor(to_small_matrix(worked_tokens()));
  const SmallHead head = to_small_head(worked_head());
  const Tensor<float, 2> q = project(x.view(), to_tensor(head.wq).view()),
                         k = project(x.view(), to_tensor(key_weights(head)).view()),
                         v = project(x.view(), to_tensor(head.wv).view());
  const Attended all = attend(q.view(), k.view(), v.view(), {.causal = true});
  bool same = true;
  for (std::int64_t t = 0; t < 3; ++t) {
    const Attended one =
        attend(View<const float, 2>(q.view()).slice(t, t + 1), View<const float, 2>(k.view()).slice(0, t + 1),
               View<const float, 2>(v.view()).slice(0, t + 1), {.causal = true});
    same = same && std::memcmp(one.outputs.data(), &all.outputs(t, 0, 0), 2 * sizeof(float)) == 0;
  }
  return same;
}

void add_cache(Step& step) {
  const bool same_bits = same_one_by_one();
  step.blocks.push_back(LessonText{
      fmt::format(
          "In training all rows are computed at once: no row sees a later one, so each learns to foretell its next "
          "token, in parallel. In writing, tokens come one by one. Since old rows cannot see the new token, their "
          "keys and values stay as they were and are kept: the key/value cache. The engine's outputs for the three "
          "rows at once and one by one {}.",
          same_bits ? "are the same to the last bit" : "differ"),
      fmt::format("训练时所有行一次算完：没有哪一行看得到后面，于是每一行都在学着预测自己的下一个词元，并行进行。生成时"
                  "词元一个一个来。"
                  "旧的行看不到新词元，它们的键和值不会变，留着就行：这就是键值缓存（KV "
                  "cache）。三行一次算完与逐行算，引擎的输出{}。",
                  same_bits ? "每一位都相同" : "不同")});
  constexpr std::int64_t kChannels = 2, kPerRow = 3 * kChannels * kChannels, kPerPair = 2 * kChannels;
  Table table{
      .caption =
          {fmt::format("Multiplications to write n tokens with this head: {} per row for q, k and v, {} per pair "
                       "for score and sum; pairs as the engine counts them",
                       kPerRow, kPerPair),
           fmt::format(
               "用这个头写 n 个词元要做的乘法：每行算 q、k、v 要 {} 次，每对算分数与求和要 {} 次；对数由引擎数出",
               kPerRow, kPerPair)},
      .columns = {same("n"),
                  {"pairs, all again each time", "对数：每次重算"},
                  {"pairs, with the cache", "对数：用缓存"},
                  {"multiplications, all again", "乘法：每次重算"},
                  {"with the cache", "乘法：用缓存"},
                  {"times fewer", "相差倍数"}},
      .rows = {}};
  Numbers counted{.shape = {3, 4}, .items = {}}, lengths{.shape = {3}, .items = {}};
  for (const std::int64_t n : {std::int64_t{3}, std::int64_t{10}, std::int64_t{100}}) {
    std::int64_t again = 0, cached = 0, rows_again = 0;
    for (std::int64_t t = 1; t <= n; ++t) {
      again += pairs_read(t, t, true);
      cached += pairs_read(1, t, true);
      rows_again += t;
    }
    const std::int64_t work_again = rows_again * kPerRow + again * kPerPair,
                       work_cached = n * kPerRow + cached * kPerPair;
    const std::vector<std::int64_t> row = {again, cached, work_again, work_cached};
    table.rows.push_back({exactly(n)});
    lengths.items.push_back(exactly(n));
    for (const std::int64_t count : row) {
      table.rows.back().push_back(exactly(count));
      counted.items.push_back(exactly(count));
    }
    table.rows.back().push_back(same(decimal(Rational(work_again, work_cached).number(), 3)));
  }
  step.blocks.push_back(std::move(table));
  step.values.emplace_back("one_by_one_same_bits", Numbers{.shape = {}, .items = {exactly(same_bits)}});
  step.values.emplace_back("cache_n", lengths);
  step.values.emplace_back("cache_counts", counted);
}

}  // namespace

Step masks_and_cache(const LessonRequest&) {
  Step step;
  add_causal(step);
  add_padding(step);
  add_cache(step);
  return step;
}

}  // namespace regard
