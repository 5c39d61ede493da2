// Large weights that do nothing.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "intervention/experiment.h"
#include "intervention/sweep.h"
#include "lesson/attend.h"
#include "lesson/parts.h"
#include "lesson/real_model.h"
#include "lesson/worked_head.h"
#include "text/display.h"

namespace regard {
namespace {

void add_equal_values(Step& step) {
  SmallHead head;
  head.xq = {1, 1, {1}};
  head.xk = {2, 1, {0, 1}};
  head.xv = {2, 2, {2, 1, 2, 1}};
  head.wq = head.wk = {1, 1, {1}};
  head.wv = {2, 2, {1, 0, 0, 1}};
  const RationalMatrix values(2, 2, {2, 1, 2, 1});
  Numbers weights{.shape = {2, 2}, .items = {}}, outputs{.shape = {2, 2}, .items = {}};
  // Scores 0 and ln of the second weight over the first.
  for (const Rational& ratio : {Rational(4), Rational(3, 7)}) {
    head.xq(0, 0) = std::log(ratio.number());
    const SmallHeadResult result = run(head);
    const RationalMatrix exact = exact_softmax({1, 2, {1, ratio}});
    const Numbers w = numbers(to_tensor(result.weights).view(), exact),
                  o = numbers(to_tensor(result.outputs).view(), exact * values);
    weights.items.insert(weights.items.end(), w.items.begin(), w.items.end());
    outputs.items.insert(outputs.items.end(), o.items.begin(), o.items.end());
  }
  const auto weight_text = [&](std::int64_t r) {
    return fmt::format("({}, {})", weights(r, 0).decimal(), weights(r, 1).decimal());
  };
  step.blocks.push_back(LessonText{
      fmt::format(
          "Two positions hand on the same value, {}. One head reads them with weights {}, another with {}: two very "
          "different pictures, one output, {}. The weights say what was read. What it changes, they do not say.",
          exactly(values).row_text(0), weight_text(0), weight_text(1), outputs.row_text(0)),
      fmt::format("两个位置交出的值相同，都是 {}。一个头用权重 {} 去读，另一个用 {}：画出来大不一样，输出却都是 {}。"
                  "权重说的是读了什么，没有说它改变了什么。",
                  exactly(values).row_text(0), weight_text(0), weight_text(1), outputs.row_text(0))});
  step.blocks.push_back(MatrixRow{
      .caption = {"Different weights, the same output", "权重不同，输出相同"},
      .matrices = {
          {.name = {"weights", "权重"}, .numbers = weights, .rows = numbered("h", 2), .columns = numbered("k", 2)},
          {.name = {"values", "值"}, .numbers = exactly(values), .rows = numbered("v", 2), .columns = {}},
          {.name = {"outputs", "输出"}, .numbers = outputs, .rows = numbered("h", 2), .columns = {}}}});
  head.xq(0, 0) = 0;
  Exploration explore{
      .id = "equal_values",
      .caption = {"Move the score of the second key: the weights go wherever you like, the output stays until "
                  "you make the values differ.",
                  "移动第二个键的分数：权重随你变，输出不动，直到你让两个值不同。"},
      .readers = {"q"},
      .keys = numbered("k", 2),
      .head = head,
      .sliders = {{.label = {"score of k2", "k2 的分数"},
                   .low = -4,
                   .high = 4,
                   .step = 0.25,
                   .initial = 1.25,
                   .targets = {{.what = "xq"}}},
                  {.label = {"first number of v2", "v2 的第一个数"},
                   .low = 0,
                   .high = 4,
                   .step = 0.25,
                   .initial = 2,
                   .targets = {{.what = "xv", .row = 1}}}},
      .checks = {}};
  check_on_a_grid(explore, 5);
  step.blocks.push_back(std::move(explore));
  step.values.emplace_back("weights", weights);
  step.values.emplace_back("outputs", outputs);
}

// One read of a real model: the strongest of a head, and what happens when it is cut.
struct Read {
  std::int64_t layer = 0, head = 0, key = 0;
  double weight = 0, effect = 0;
};

constexpr double kIdle = 0.05;  // a read that changes at most this share of the difference changes little

std::vector<Read> strongest_reads(const LessonModel& real) {
  const std::int64_t tokens = std::ssize(real.ids);
  const Tensor<float, 4> weights = last_row_weights(real, {});
  std::vector<Read> reads;
  for (std::int64_t l = 0; l < weights.shape()[0]; ++l)
    for (std::int64_t h = 0; h < weights.shape()[1]; ++h) {
      Read read{.layer = l, .head = h};
      // Neither the first position, where heads put what they do not need, nor the row itself.
      for (std::int64_t s = 1; s + 1 < tokens; ++s)
        if (const double weight = weights(l, h, 0, s); weight > read.weight) read.key = s, read.weight = weight;
      if (read.weight > 0) reads.push_back(read);
    }
  return reads;
}

void cut_each(const LessonModel& real, std::vector<Read>& reads, const Experiment& experiment, Progress* progress) {
  Sweep sweep(*real.model, experiment.clean(), experiment.measure(), {.row = experiment.row(), .progress = progress});
  const std::int64_t row = experiment.row();
  sweep.run(
      std::ssize(reads),
      [&](std::int64_t i) {
        const Read& read = reads[static_cast<std::size_t>(i)];
        const Edit edit =
            parse_edit(fmt::format("block edge layer={} head={} row={} key={}", read.layer, read.head, row, read.key));
        return experiment.resolve(std::vector<Edit>{edit});
      },
      [&](const WhatIfResult& one) {
        reads[static_cast<std::size_t>(one.index)].effect = one.value - experiment.measure().base();
      });
}

void add_real_heads(Step& step, const LessonModel& real, Progress* progress) {
  const Model& model = *real.model;
  std::vector<Read> reads = strongest_reads(real);
  const Experiment experiment(model, {.ids = real.ids, .runs = {}, .edits = {}, .metric = {}, .sites = Sweep::sites()},
                              true, progress);
  cut_each(real, reads, experiment, progress);
  if (reads.empty()) {
    step.blocks.push_back(
        LessonText{"The text has too few tokens: between the first and the last nothing is left to read.",
                   "这段文本的词元太少：第一个和最后一个之间没有可读的。"});
    return;
  }
  const auto smaller = [](const Read& a, const Read& b) { return std::fabs(a.effect) < std::fabs(b.effect); };
  const Read busiest = *std::max_element(reads.begin(), reads.end(), smaller);
  double heaviest = 0;
  for (const Read& read : reads) heaviest = std::max(heaviest, read.weight);
  const std::int64_t all = std::ssize(reads);
  std::erase_if(reads, [&](const Read& read) { return read.weight < heaviest / 2; });
  std::sort(reads.begin(), reads.end(), smaller);
  const Read most_idle = reads.front();

  const auto token = [&](std::int32_t id) { return "“" + display(model.tokenizer().bytes(id)) + "”"; };
  const Metric& metric = experiment.measure().metric();
  const double base = experiment.measure().base();
  const std::string text = whole_text(real);
  const std::string key = token(real.ids[static_cast<std::size_t>(most_idle.key)]), last = token(real.ids.back());
  const LessonText prefers = {fmt::format("{} reads “{}” and prefers {} to {} by {} (difference of the logits).",
                                          real.name, text, token(metric.token), token(metric.against), decimal(base)),
                              fmt::format("{} 读“{}”，认为下一个是 {} 而不是 {}，logit 相差 {}。", real.name, text,
                                          token(metric.token), token(metric.against), decimal(base))};
  const LessonText reads_it = {
      fmt::format("in layer {}, head {}, the last position {} reads {} with weight {}. Cut that one read before the "
                  "softmax, and the difference changes by {}.",
                  most_idle.layer, most_idle.head, last, key, decimal(most_idle.weight, 3),
                  decimal(most_idle.effect, 2)),
      fmt::format("第 {} 层第 {} 个头里，最后的位置 {} 读 {} 的权重是 {}。在 softmax "
                  "之前切断这一次读取，差值的变化是 {}。",
                  most_idle.layer, most_idle.head, last, key, decimal(most_idle.weight, 3),
                  decimal(most_idle.effect, 2))};
  const bool found = std::fabs(most_idle.effect) <= kIdle * std::fabs(base);
  step.blocks.push_back(
      found ? LessonText{"The same in a model. " + prefers.en + " But " + reads_it.en,
                         "模型里也是这样。" + prefers.zh + "可是，" + reads_it.zh}
            : LessonText{"Whether that is so in a model depends on the text. " + prefers.en +
                             " Here each of the largest weights matters. The one that matters least: " + reads_it.en,
                         "模型里是否也这样，要看文本。" + prefers.zh + "这里每个大的权重都起作用，作用最小的是：" +
                             reads_it.zh});
  Table table{
      .caption =
          {fmt::format(
               "In each of {} heads the strongest read of the last position was cut alone (but for those of itself and "
               "of the first position). The weights of at least half the largest, those that change least first; the "
               "last row is the read that changes most of all",
               all),
           fmt::format(
               "全部 {} "
               "个头里，最后一个位置读得最多的那一处（自己和第一个位置除外）逐一单独切断。先列权重不小于最大值一半的，"
               "影响小的在前；最后一行是所有读取中影响最大的",
               all)},
      .columns =
          {{"layer", "层"}, {"head", "头"}, {"reads", "读"}, {"weight", "权重"}, {"change when cut", "切断后的变化"}},
      .rows = {}};
  std::vector<Read> shown(reads.begin(), reads.begin() + std::min<std::ptrdiff_t>(5, std::ssize(reads)));
  if (std::ranges::none_of(shown,
                           [&](const Read& read) { return read.layer == busiest.layer && read.head == busiest.head; }))
    shown.push_back(busiest);
  Numbers values{.shape = {std::ssize(shown), 5}, .items = {}};
  for (const Read& read : shown) {
    table.rows.push_back({exactly(read.layer), exactly(read.head),
                          same(token(real.ids[static_cast<std::size_t>(read.key)])), Number{read.weight, {}},
                          Number{read.effect, {}}});
    for (const Number& number :
         {exactly(read.layer), exactly(read.head), exactly(read.key), Number{read.weight, {}}, Number{read.effect, {}}})
      values.items.push_back(number);
  }
  step.blocks.push_back(std::move(table));
  step.blocks.push_back(LessonText{
      fmt::format("A large weight may read what is not used later, or what other heads bring as well. To know what a "
                  "read does, "
                  "change it and look: regard patch {} -p \"…\" --edit \"block edge layer={} head={} row=-1 key={}\", "
                  "or regard why for "
                  "all at once.",
                  real.name, most_idle.layer, most_idle.head, most_idle.key),
      fmt::format(
          "权重大，可能读到的东西后面没有用到，也可能别的头同样带来了。想知道一次读取起了什么作用，就改动它再看："
          "regard patch {} -p \"…\" --edit \"block edge layer={} head={} row=-1 key={}\"；regard why 则一次看全部。",
          real.name, most_idle.layer, most_idle.head, most_idle.key)});
  step.values.emplace_back("base", numbers({base}, {}));
  step.values.emplace_back("cut_reads", values);
}

}  // namespace

Step reading_is_not_explaining(const LessonRequest& request) {
  Step step;
  add_equal_values(step);
  if (!request.model) {
    step.blocks.push_back(no_model_here());
  } else if (const ModelConfig& config = request.model->model->config(); !config.head || !config.causal) {
    step.blocks.push_back(LessonText{
        fmt::format(
            "{} does not continue texts, so there is no next token whose change could be measured: name a model that "
            "writes, for instance smollm2.",
            request.model->name),
        fmt::format("{} 不是续写文本的模型，没有“下一个词元”可以衡量：请换一个会写的模型，例如 smollm2。",
                    request.model->name)});
  } else {
    add_real_heads(step, *request.model, request.progress);
  }
  return step;
}

}  // namespace regard
