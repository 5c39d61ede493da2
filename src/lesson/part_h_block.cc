// A layer of a real model, step by step, at the last row of a text.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "intervention/run_record.h"
#include "lesson/parts.h"
#include "lesson/real_model.h"
#include "model/layers.h"

namespace regard {
namespace {

constexpr std::int64_t kMostShown = 4;

struct Stage {
  const char* name;  // in values
  LessonText label;
  std::vector<float> numbers;
};

// In the order in which the family's block makes them.
std::vector<Stage> stages(const Model& model, const RunRecord& run, std::int64_t l) {
  const ModelConfig& c = model.config();
  const Layer& layer = model.layers()[static_cast<std::size_t>(l)];
  const std::int64_t last = run.tokens() - 1;
  const auto at = [&](Site site) {
    const View<const float, 3> all = run.at(site, l);
    return std::vector<float>(&all(last, 0, 0), &all(last, 0, 0) + all.shape[2]);
  };
  const auto normed = [&](const Norm& norm, std::vector<float> x) {
    const View<float, 2> row(x.data(), {1, std::ssize(x)});
    apply(norm, c, row, row);
    return x;
  };
  const LessonText norm{"norm", "归一化"}, attention{"attention", "注意力"}, residual{"residual: add", "残差相加"},
      feed_forward{"feed-forward", "前馈网络"};
  const bool after = c.norm_place == NormPlace::after;
  std::vector<Stage> all;
  all.push_back({"resid_pre", {"what comes in", "输入"}, at(Site::resid_pre)});
  if (!after) all.push_back({"attention_norm", norm, normed(layer.attention_norm, at(Site::resid_pre))});
  all.push_back({"attn_out", attention, at(Site::attn_out)});
  all.push_back({"resid_mid", residual, at(Site::resid_mid)});
  const std::vector<float> between = after ? normed(layer.attention_norm, at(Site::resid_mid))
                                           : at(c.parallel_branches ? Site::resid_pre : Site::resid_mid);
  all.push_back({"mlp_norm", norm, after ? between : normed(layer.mlp_norm, between)});
  all.push_back({"mlp_out", feed_forward, at(Site::mlp_out)});
  all.push_back(
      {"resid_post", after ? LessonText{"residual: add, norm", "残差相加，归一化"} : residual, at(Site::resid_post)});
  return all;
}

double size_of(const std::vector<float>& x) {
  double sum = 0;
  for (const float item : x) sum += static_cast<double>(item) * item;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// How the last row of this layer read: the mean over heads, and the head that looks away from the first token most.
void add_reads(Step& step, const LessonModel& real, std::int64_t l) {
  const Tensor<float, 4> read = last_row_weights(real, {l});
  const std::int64_t heads = read.shape()[1], tokens = std::ssize(real.ids);
  std::vector<std::string> labels, names;
  for (std::int64_t s = 0; s < tokens; ++s) labels.push_back(token_text(real, s));
  std::vector<double> all;
  for (std::int64_t h = 0; h < heads; ++h) {
    names.push_back(fmt::format("h{}", h));
    for (std::int64_t s = 0; s < tokens; ++s) all.push_back(read(0, h, 0, s));
  }
  const Numbers weights = numbers(all, {heads, tokens});
  step.blocks.push_back(
      MatrixRow{.caption = {fmt::format("What the last position read in layer {}: a row for each head", l),
                            fmt::format("第 {} 层里，最后一个位置读了什么：每个头一行", l)},
                .matrices = {{.name = {"weights", "权重"}, .numbers = weights, .rows = names, .columns = labels}}});
  step.values.emplace_back("head_weights", weights);
}

}  // namespace

Step the_block(const LessonRequest& request) {
  Step step;
  step.blocks.push_back(
      LessonText{"A model is a stack of blocks, and all of them write into one stream, the residual: a row of numbers "
                 "per token. A block "
                 "norms the row, lets attention read other positions and adds what it brought; norms again, lets a "
                 "feed-forward network "
                 "work on each row by itself and adds that. Nothing is overwritten, everything is a sum.",
                 "模型是一摞块，它们都往同一条“残差流”里写：每个词元一行数。一个块先把这一行归一化，让注意力去读别的位"
                 "置，把读到的加回来；"
                 "再归一化，由前馈网络单独处理每一行，再加回来。没有什么被覆盖，一切都是相加。"});
  if (!request.model) {
    step.blocks.push_back(no_model_here());
    return step;
  }
  const Model& model = *request.model->model;
  const std::int64_t l = model.config().layers / 2;
  const RunRecord run(model, request.model->ids,
                      {Site::resid_pre, Site::attn_out, Site::resid_mid, Site::mlp_out, Site::resid_post},
                      request.progress);
  const std::int64_t shown = std::min(kMostShown, model.config().width);
  const std::vector<Stage> all = stages(model, run, l);
  const std::string text = whole_text(*request.model);
  const std::string token = token_text(*request.model, run.tokens() - 1);
  step.blocks.push_back(LessonText{
      fmt::format("{}, layer {} of {}, the last row (“{}”) of the text “{}”. The row has {} numbers; the first {} are "
                  "shown, and "
                  "the size of all of them (root of the mean square).",
                  request.model->name, l, model.config().layers, token, text, model.config().width, shown),
      fmt::format("{}，第 {} 层（共 {} 层），文本“{}”的最后一行（“{}”）。一行有 {} 个数；这里写出前 {} "
                  "个，以及全部的大小（均方根）。",
                  request.model->name, l, model.config().layers, text, token, model.config().width, shown)});
  FlowChart flow{.caption = {"The block, with the size of what each step gives", "这个块：每一步结果的大小"},
                 .boxes = {}};
  Table table{.caption = {"The same row, step by step", "同一行，一步一步"},
              .columns = {{"step", "步骤"}, {"size", "大小"}},
              .rows = {}};
  for (std::int64_t i = 0; i < shown; ++i) table.columns.push_back(same(fmt::format("[{}]", i)));
  for (const Stage& stage : all) {
    const double size = size_of(stage.numbers);
    flow.boxes.emplace_back(stage.label, decimal(size, 3));
    table.rows.push_back({stage.label, Number{size, {}}});
    std::vector<double> first = {size};
    for (std::int64_t i = 0; i < shown; ++i) {
      first.push_back(stage.numbers[static_cast<std::size_t>(i)]);
      table.rows.back().push_back(Number{first.back(), {}});
    }
    step.values.emplace_back(stage.name, numbers(first, {std::ssize(first)}));
  }
  step.blocks.push_back(std::move(flow));
  step.blocks.push_back(std::move(table));
  const View<const float, 3> pre = run.at(Site::resid_pre, l), out = run.at(Site::attn_out, l),
                             mid = run.at(Site::resid_mid, l);
  double away = 0;
  for (std::int64_t c = 0; c < pre.shape[2]; ++c)
    away = std::max<double>(
        away, std::fabs(mid(run.tokens() - 1, 0, c) - (pre(run.tokens() - 1, 0, c) + out(run.tokens() - 1, 0, c))));
  step.blocks.push_back(LessonText{
      fmt::format(
          "The books balance: what came in plus what attention brought is what stands after the first sum; over all {} "
          "numbers the largest difference is {}.",
          pre.shape[2], decimal(away)),
      fmt::format("账是平的：输入加上注意力带来的，就是第一次相加的结果；全部 {} 个数里，最大的差别是 {}。",
                  pre.shape[2], decimal(away))});
  step.values.emplace_back("largest_imbalance", numbers({away}, {}));
  add_reads(step, *request.model, l);
  return step;
}

}  // namespace regard
