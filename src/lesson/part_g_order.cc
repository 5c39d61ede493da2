// Attention by itself does not know order; rotated queries and keys know how far apart they are.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/rotary.h"
#include "lesson/attend.h"
#include "lesson/parts.h"
#include "lesson/worked_head.h"

namespace regard {
namespace {

SmallMatrix reordered(const SmallMatrix& rows, const std::vector<std::int64_t>& order) {
  SmallMatrix result{rows.rows, rows.columns, {}};
  for (const std::int64_t r : order)
    for (std::int64_t c = 0; c < rows.columns; ++c) result.items.push_back(rows(r, c));
  return result;
}

// Row 3 of the worked head, over keys in some order; each pair stays together.
SmallHead reading(const std::vector<std::int64_t>& order, bool rotary) {
  SmallHead head = to_small_head(worked_head());
  head.xq = {1, 2, {1, 1}};
  head.xk = reordered(head.xk, order);
  head.xv = reordered(head.xv, order);
  head.rotary = rotary;
  head.query_positions = {2};
  head.key_positions = {0, 1, 2};
  return head;
}

std::string order_text(const std::vector<std::int64_t>& order) {
  std::string text;
  for (const std::int64_t i : order) text += (text.empty() ? "" : " ") + fmt::format("x{}", i + 1);
  return text;
}

void add_permutations(Step& step) {
  const std::vector<std::vector<std::int64_t>> orders = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}};
  const WorkedResult exact = work(worked_head());
  const RationalMatrix exact_output(1, 2, {exact.exact_outputs(2, 0), exact.exact_outputs(2, 1)});
  Table table{
      .caption = {"What position 3 gets, for three orders of the same key/value pairs",
                  "同样的键值对排成三种顺序，位置 3 得到什么"},
      .columns = {{"order", "顺序"}, {"without positions", "没有位置"}, {"with rotary positions", "有旋转位置"}},
      .rows = {}};
  Numbers without{.shape = {3, 2}, .items = {}}, with{.shape = {3, 2}, .items = {}};
  for (const auto& order : orders) {
    const Numbers plain = numbers(to_tensor(run(reading(order, false)).outputs).view(), exact_output);
    const Numbers rotated = numbers(to_tensor(run(reading(order, true)).outputs).view());
    table.rows.push_back({same(order_text(order)), same(plain.row_text(0)), same(rotated.row_text(0))});
    without.items.insert(without.items.end(), plain.items.begin(), plain.items.end());
    with.items.insert(with.items.end(), rotated.items.begin(), rotated.items.end());
  }
  step.blocks.push_back(
      LessonText{"A sum has no order. Shuffle the key/value pairs, and every query still finds the same keys with the "
                 "same weights and "
                 "gets the same sum: “dog bites man” would be “man bites dog”. Order has to be put in.",
                 "求和没有顺序。把键值对打乱，查询照样找到同样的键、同样的权重，得到同样的和：“狗咬人”就成了“人咬狗”。"
                 "顺序要另外放进去。"});
  step.blocks.push_back(LessonText{
      "Rotary positions turn each pair of numbers of a query or key by an angle that grows with its position. The dot "
      "product of two turned vectors depends on the difference of their angles only, that is, on how far apart they "
      "are.",
      "旋转位置（RoPE）把查询和键里的每一对数转一个角度，位置越靠后转得越多。两个转过的向量，点积只看角度之差，也就是只"
      "看相距多远。"});
  step.blocks.push_back(std::move(table));
  step.values.emplace_back("permuted_without_positions", without);
  step.values.emplace_back("permuted_with_rotary", with);
}

void add_distances(Step& step) {
  const std::vector<std::int64_t> distances = {0, 1, 2, 3}, starts = {0, 7, 100};
  Table table{.caption = {"Dot product of q = [1, 2] at position p + distance with k = [2, 1] at position p",
                          "q = [1, 2] 放在位置 p + 距离，k = [2, 1] 放在位置 p，二者的点积"},
              .columns = {{"distance", "距离"}},
              .rows = {}};
  for (const std::int64_t p : starts) table.columns.push_back(same(fmt::format("p = {}", p)));
  Numbers dots{.shape = {std::ssize(distances), std::ssize(starts)}, .items = {}};
  double spread = 0;
  for (const std::int64_t distance : distances) {
    table.rows.push_back({exactly(distance)});
    double low = INFINITY, high = -INFINITY;
    for (const std::int64_t p : starts) {
      SmallHead head;
      head.xq = {1, 2, {1, 2}};
      head.xk = head.xv = {1, 2, {2, 1}};
      head.wq = head.wk = head.wv = {2, 2, {1, 0, 0, 1}};
      head.rotary = true;
      head.query_positions = {static_cast<double>(p + distance)};
      head.key_positions = {static_cast<double>(p)};
      const double dot = run(head).scores(0, 0);
      low = std::min(low, dot);
      high = std::max(high, dot);
      dots.items.push_back({dot, {}});
      table.rows.back().push_back(Number{dot, {}});
    }
    spread = std::max(spread, high - low);
  }
  step.blocks.push_back(std::move(table));
  step.blocks.push_back(LessonText{
      fmt::format("Each row of the table is one number; what is left between its columns is the rounding of 32-bit "
                  "numbers, at most {}.",
                  decimal(spread, 2)),
      fmt::format("表里每一行都是同一个数；各列之间剩下的差别只是 32 位数的舍入，最多 {}。", decimal(spread, 2))});
  step.values.emplace_back("distances", exactly(RationalMatrix(4, 1, {0, 1, 2, 3})));
  step.values.emplace_back("rotary_dot_products", dots);
}

void add_exploration(Step& step) {
  Exploration explore{
      .id = "positions",
      .caption = {"Move the whole text, and nothing happens. Move the reader alone, and the weights change.",
                  "整段文本一起移动，什么也不变；只移动读的位置，权重就变了。"},
      .readers = {"q3"},
      .keys = numbered("k", 3),
      .head = reading({0, 1, 2}, true),
      .sliders = {},
      .checks = {}};
  Slider whole{.label = {"move the whole text by", "整段移动"},
               .low = 0,
               .high = 40,
               .step = 1,
               .initial = 0,
               .targets = {{.what = "query_positions"}}};
  for (std::int64_t i = 0; i < 3; ++i) whole.targets.push_back({.what = "key_positions", .row = i});
  explore.sliders = {whole,
                     {.label = {"move the reader by", "读的位置移动"},
                      .low = 0,
                      .high = 12,
                      .step = 1,
                      .initial = 0,
                      .targets = {{.what = "query_positions"}}}};
  check_on_a_grid(explore, 5);
  step.blocks.push_back(std::move(explore));
}

}  // namespace

Step order_and_rotation(const LessonRequest&) {
  Step step;
  add_permutations(step);
  add_distances(step);
  add_exploration(step);
  return step;
}

}  // namespace regard
