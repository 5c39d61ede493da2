// Three tokens, one head, every number a fraction.

#include <fmt/format.h>

#include "lesson/parts.h"
#include "lesson/worked_head.h"

namespace regard {
namespace {

void add_projections(Step& step, const WorkedHead& head, const WorkedResult& worked) {
  const std::vector<std::string> tokens = numbered("x", 3);
  step.blocks.push_back(
      LessonText{"Three tokens, each a row of two numbers: X. Three matrices, which a model learns, make a query, a "
                 "key and a value "
                 "of every row. Positions are counted 1, 2, 3 here, as one does on paper.",
                 "三个词元，每个是两个数组成的一行，合起来是 "
                 "X。模型学到的三个矩阵，把每一行变成查询、键和值。这里位置按 1、2、3 来数，和在纸上一样。"});
  step.blocks.push_back(MatrixRow{
      .caption = {"The tokens and what is learned. c = √2 ln 2 is chosen so that every weight becomes a fraction.",
                  "词元与学到的矩阵。取 c = √2 ln 2，是为了让每个权重都是分数。"},
      .matrices = {{.name = same("X"), .numbers = exactly(head.xq), .rows = tokens, .columns = {}},
                   {.name = same("W_Q"), .numbers = exactly(head.wq), .rows = {}, .columns = {}},
                   {.name = same("W_K"), .numbers = exactly(head.wk, Factor::sqrt2_ln2), .rows = {}, .columns = {}},
                   {.name = same("W_V"), .numbers = exactly(head.wv), .rows = {}, .columns = {}}}});
  step.blocks.push_back(
      MatrixRow{.caption = {"Q = X W_Q, K = X W_K, V = X W_V", "Q = X W_Q，K = X W_K，V = X W_V"},
                .matrices = {{.name = same("Q"), .numbers = worked.q, .rows = numbered("q", 3), .columns = {}},
                             {.name = same("K"), .numbers = worked.k, .rows = numbered("k", 3), .columns = {}},
                             {.name = same("V"), .numbers = worked.v, .rows = numbered("v", 3), .columns = {}}}});
}

void add_reading(Step& step, const WorkedResult& worked) {
  const std::vector<std::string> q = numbered("q", 3), k = numbered("k", 3);
  step.blocks.push_back(LessonText{
      fmt::format(
          "A score is the dot product of a query and a key, divided by √2 (step e says why). The exponential of n "
          "ln 2 is 2 to the n, so row 1 has the exponentials 2, 1, 2: divided by their sum, {}. Row 2 gives {}, row "
          "3 gives {}.",
          worked.weights.row_fractions(0), worked.weights.row_fractions(1), worked.weights.row_fractions(2)),
      fmt::format(
          "分数是查询与键的点积，再除以 √2（原因见第 e 步）。n ln 2 的指数是 2 的 n 次方，所以第 1 行取指数得 2、1、2，"
          "除以总和就是 {}；第 2 行是 {}，第 3 行是 {}。",
          worked.weights.row_fractions(0), worked.weights.row_fractions(1), worked.weights.row_fractions(2))});
  step.blocks.push_back(MatrixRow{
      .caption = {"Each row of weights adds up to 1. A row of the output is the weights times V.",
                  "每一行权重之和为 1。输出的一行 = 这一行权重 × V。"},
      .matrices = {{.name = {"scores Q Kᵀ/√2", "分数 Q Kᵀ/√2"}, .numbers = worked.scores, .rows = q, .columns = k},
                   {.name = {"weights", "权重"}, .numbers = worked.weights, .rows = q, .columns = k},
                   {.name = {"output", "输出"}, .numbers = worked.outputs, .rows = numbered("o", 3), .columns = {}}}});
  step.blocks.push_back(
      ReadsPicture{.caption = {"The same weights as lines: position 3 reads itself as much as the other two together.",
                               "同样的权重画成线：位置 3 读自己，与读另外两个之和一样多。"},
                   .readers = q,
                   .keys = k,
                   .weights = worked.weights});
  std::string outputs;
  for (std::int64_t r = 0; r < 3; ++r) outputs += (r > 0 ? ", " : "") + worked.outputs.row_text(r);
  step.blocks.push_back(LessonText{fmt::format("The outputs: {}.", outputs), fmt::format("三行输出：{}。", outputs)});
}

}  // namespace

Step worked_single_head(const LessonRequest&) {
  Step step;
  const WorkedHead head = worked_head();
  WorkedResult worked = work(head);
  add_projections(step, head, worked);
  add_reading(step, worked);
  step.blocks.push_back(FlowChart{
      .caption =
          {"Shapes, as programs write them: B texts, H heads, S positions, d_h numbers per head, d = H d_h. Here "
           "B = 1, H = 1, S = 3, d_h = 2.",
           "程序里的形状：B 段文本、H 个头、S 个位置、每个头 d_h 个数，d = H d_h。这里 B = 1，H = 1，S = 3，d_h = 2。"},
      .boxes = {{same("Q, K, V"), "(B, H, S, d_h)"},
                {{"weights", "权重"}, "(B, H, S, S)"},
                {{"weights × V", "权重 × V"}, "(B, H, S, d_h)"},
                {{"heads side by side", "各头拼接"}, "(B, S, d)"}}});
  Exploration explore{
      .id = "sharpness",
      .caption =
          {"c makes the head sharp or dull: at 0 every key is read alike, and the larger it is the more the best key "
           "takes all.",
           "c 决定注意力有多尖锐：为 0 时每个键读得一样多；越大，最匹配的键就越独占。"},
      .readers = numbered("q", 3),
      .keys = numbered("k", 3),
      .head = to_small_head(head),
      .sliders = {key_scale_slider()},
      .checks = {}};
  check_on_a_grid(explore, 25);
  step.blocks.push_back(std::move(explore));
  step.values = {{"x", exactly(head.xq)},
                 {"q", worked.q},
                 {"k", worked.k},
                 {"v", worked.v},
                 {"scores", worked.scores},
                 {"weights", worked.weights},
                 {"outputs", worked.outputs}};
  return step;
}

}  // namespace regard
