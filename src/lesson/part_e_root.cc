// The spread of dot products grows with their length; a softmax of widely spread scores learns nothing.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/matmul.h"
#include "kernels/softmax.h"
#include "lesson/attend.h"
#include "lesson/normal.h"
#include "lesson/parts.h"

namespace regard {
namespace {

constexpr std::array<std::int64_t, 6> kWidths = {1, 4, 16, 64, 256, 1024};
constexpr std::int64_t kQueries = 512, kKeys = 512, kSeen = 8;

// Every dot product of a query and a key, by the engine's dense product (its attention takes 512 channels at most).
Tensor<float, 2> dot_products(const Tensor<float, 2>& q, const Tensor<float, 2>& k) {
  Tensor<float, 2> scores({q.shape()[0], k.shape()[0]});
  matmul({.dtype = DType::f32,
          .rows = k.shape()[0],
          .cols = k.shape()[1],
          .data = reinterpret_cast<const std::byte*>(k.data()),
          .row_stride = k.shape()[1] * 4},
         q.view(), scores.view());
  return scores;
}

// Of all of them, in double.
double variance_of(const Tensor<float, 2>& scores) {
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < scores.size(); ++i) sum += scores.data()[i];
  const double mean = sum / static_cast<double>(scores.size());
  for (std::int64_t i = 0; i < scores.size(); ++i) squares += (scores.data()[i] - mean) * (scores.data()[i] - mean);
  return squares / static_cast<double>(scores.size() - 1);
}

// The largest weight over the first keys of a row, and how strongly its weights answer to its scores: the sum of
// p (1 - p), which is the trace of the softmax's derivative. Means over rows.
std::pair<double, double> saturation(const Tensor<float, 2>& scores, double scale) {
  const std::int64_t rows = scores.shape()[0];
  double largest = 0, slope = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::array<float, kSeen> p;
    for (std::int64_t j = 0; j < kSeen; ++j) p[j] = static_cast<float>(scores(r, j) * scale);
    softmax(p.data(), p.data(), kSeen);
    largest += *std::max_element(p.begin(), p.end());
    for (const float weight : p) slope += weight * (1.0 - weight);
  }
  return {largest / static_cast<double>(rows), slope / static_cast<double>(rows)};
}

struct Measured {
  std::vector<double> widths, variance, deviation, largest, slope, largest_scaled, slope_scaled;
};

Measured measure() {
  Measured all;
  for (const std::int64_t d : kWidths) {
    const auto seed = static_cast<std::uint64_t>(d);
    const Tensor<float, 2> q = normal_rows(kQueries, d, 2 * seed), k = normal_rows(kKeys, d, 2 * seed + 1);
    const Tensor<float, 2> scores = dot_products(q, k);
    const double variance = variance_of(scores);
    const auto [largest, slope] = saturation(scores, 1);
    const auto [largest_scaled, slope_scaled] = saturation(scores, 1 / std::sqrt(static_cast<double>(d)));
    all.widths.push_back(static_cast<double>(d));
    all.variance.push_back(variance);
    all.deviation.push_back(std::sqrt(variance));
    all.largest.push_back(largest);
    all.slope.push_back(slope);
    all.largest_scaled.push_back(largest_scaled);
    all.slope_scaled.push_back(slope_scaled);
  }
  return all;
}

void add_temperature(Step& step) {
  const SmallMatrix one{1, 1, {1}};
  Numbers all{.shape = {3, 3}, .items = {}};
  const std::array<double, 3> temperatures = {0.5, 1, 2};
  Table table{.caption = {"The scores 3, 1, 0 at three temperatures", "分数 3、1、0 在三种温度下的权重"},
              .columns = {{"temperature", "温度"}, {"weights", "权重"}},
              .rows = {}};
  for (const double temperature : temperatures) {
    SmallHead head;
    head.xq = head.wq = head.wk = head.wv = one;
    head.xk = {3, 1, {3, 1, 0}};
    head.xv = {3, 1, {0, 0, 0}};
    head.temperature = temperature;
    const SmallHeadResult result = run(head);
    Numbers weights = numbers(to_tensor(result.weights).view());
    table.rows.push_back({same(decimal(temperature)), same(weights.row_text(0))});
    all.items.insert(all.items.end(), weights.items.begin(), weights.items.end());
  }
  step.blocks.push_back(
      LessonText{"A temperature divides the scores too, but is something else. √d is fixed by the shape of the model "
                 "and undoes what "
                 "the shape does; a temperature is chosen when a model is used (usually on its last scores, over the "
                 "vocabulary): low "
                 "makes it decide, high makes it play. Step a has a slider for it.",
                 "温度也是除分数，但意思不同。√d "
                 "由模型的形状决定，用来抵消形状的影响；温度是使用模型时选的（通常用在最后对词表的分数上）："
                 "低则果断，高则发散。第 a 步有它的滑块。"});
  step.blocks.push_back(std::move(table));
  step.values.emplace_back("temperature", numbers({temperatures.begin(), temperatures.end()}, {3}));
  step.values.emplace_back("temperature_weights", std::move(all));
}

}  // namespace

Step why_the_root(const LessonRequest&) {
  Step step;
  const Measured all = measure();
  const std::vector<std::int64_t> shape = {std::ssize(all.widths)};
  step.blocks.push_back(LessonText{
      fmt::format(
          "A dot product of d channels is a sum of d terms. When queries and keys have mean 0 and variance 1, the sum "
          "has variance d, so it spreads like √d. Measured on {} dot products of random vectors each: at d = 1024 "
          "they spread by {} around 0.",
          kQueries * kKeys, decimal(all.deviation.back())),
      fmt::format("d 个通道的点积是 d 项之和。查询和键均值为 0、方差为 1 时，和的方差是 d，也就是以 √d 散开。每种 d 取 "
                  "{} 个随机向量的"
                  "点积来量：d = 1024 时，它们在 0 两侧散开 {}。",
                  kQueries * kKeys, decimal(all.deviation.back()))});
  Table table{.caption = {"Dot products of random vectors, measured", "随机向量的点积，实测"},
              .columns = {same("d"), {"variance", "方差"}, {"spread", "标准差"}, same("√d")},
              .rows = {}};
  std::vector<double> roots;
  for (std::size_t i = 0; i < all.widths.size(); ++i) {
    roots.push_back(std::sqrt(all.widths[i]));
    table.rows.push_back({same(decimal(all.widths[i])), Number{all.variance[i], {}}, Number{all.deviation[i], {}},
                          same(decimal(roots[i]))});
  }
  step.blocks.push_back(std::move(table));
  step.blocks.push_back(
      LineChart{.caption = {"The spread follows √d", "散开的程度跟着 √d 走"},
                .x = same("d"),
                .y = {"spread", "标准差"},
                .log_x = true,
                .log_y = true,
                .series = {{{"measured", "实测"}, all.widths, all.deviation}, {same("√d"), all.widths, roots}}});
  step.blocks.push_back(LessonText{
      fmt::format(
          "Scores so far apart saturate the softmax: with {} keys and d = 1024, the best key takes {} of the weight "
          "on average, and the weights hardly answer to the scores any more. What they still answer with is the sum "
          "of p(1 − p), the slope that learning climbs: {}. Divided by √d it stays near {}, however large d is.",
          kSeen, decimal(all.largest.back(), 3), decimal(all.slope.back(), 2), decimal(all.slope_scaled.back(), 2)),
      fmt::format(
          "分数相差这么大，softmax 就饱和了：{} 个键、d = 1024 时，最匹配的键平均拿走 {} 的权重，权重几乎不再随分数变。"
          "还能变多少，看 p(1 − p) 之和，学习正是沿着这个坡度走：只剩 {}。除以 √d 之后，d 再大也保持在 {} 左右。",
          kSeen, decimal(all.largest.back(), 3), decimal(all.slope.back(), 2), decimal(all.slope_scaled.back(), 2))});
  step.blocks.push_back(
      LineChart{.caption = {"The slope of the softmax, the sum of p(1 − p), with and without the division by √d",
                            "softmax 的坡度，即 p(1 − p) 之和：除以 √d 与不除"},
                .x = same("d"),
                .y = {"slope", "坡度"},
                .log_x = true,
                .log_y = false,
                .series = {{{"not divided", "不除"}, all.widths, all.slope},
                           {{"divided by √d", "除以 √d"}, all.widths, all.slope_scaled}}});
  add_temperature(step);
  step.values.emplace_back("d", numbers(all.widths, shape));
  step.values.emplace_back("variance", numbers(all.variance, shape));
  step.values.emplace_back("deviation", numbers(all.deviation, shape));
  step.values.emplace_back("largest_weight", numbers(all.largest, shape));
  step.values.emplace_back("largest_weight_scaled", numbers(all.largest_scaled, shape));
  step.values.emplace_back("slope", numbers(all.slope, shape));
  step.values.emplace_back("slope_scaled", numbers(all.slope_scaled, shape));
  return step;
}

}  // namespace regard
