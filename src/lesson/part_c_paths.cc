// One token changes, and its key and its value are let change apart.

#include <fmt/format.h>

#include "lesson/parts.h"
#include "lesson/worked_head.h"

namespace regard {
namespace {

constexpr std::int64_t kReader = 2;  // row 3, counted from 0

Numbers row_of(const Numbers& all, std::int64_t r) {
  Numbers row{.shape = {all.shape[1]}, .items = {}};
  for (std::int64_t c = 0; c < all.shape[1]; ++c) row.items.push_back(all(r, c));
  return row;
}

// a - b, with their exact forms.
Numbers difference(const Numbers& a, const Numbers& b) {
  Numbers result = a;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    result.items[i] = {a.items[i].value - b.items[i].value,
                       Exact{a.items[i].exact->coefficient - b.items[i].exact->coefficient}};
  return result;
}

LessonText fractions(const Numbers& row) {
  std::string text;
  for (const Number& number : row.items) text += (text.empty() ? "" : ", ") + number.text();
  return same("(" + text + ")");
}

LessonText decimals(const Numbers& row) { return same(row.row_text(0)); }

}  // namespace

Step keys_and_values_apart(const LessonRequest&) {
  Step step;
  RationalMatrix changed = worked_tokens();
  changed(1, 1) = 2;
  struct Path {
    const char* name;
    LessonText label;
    bool key, value;
    Numbers weights = {}, output = {};
  };
  std::vector<Path> paths = {{"before", {"before", "改变之前"}, false, false},
                             {"both", {"key and value", "键和值都变"}, true, true},
                             {"keys_only", {"key only", "只有键变"}, true, false},
                             {"values_only", {"value only", "只有值变"}, false, true}};
  for (Path& path : paths) {
    WorkedHead head = worked_head();
    if (path.key) head.xk = changed;
    if (path.value) head.xv = changed;
    const WorkedResult worked = work(head);
    path.weights = row_of(worked.weights, kReader);
    path.output = row_of(worked.outputs, kReader);
    step.values.emplace_back(fmt::format("{}_weights", path.name), path.weights);
    step.values.emplace_back(path.name, path.output);
  }
  const Numbers &before = paths[0].output, &both = paths[1].output, &key = paths[2].output, &value = paths[3].output;
  const Numbers together =
      difference(difference(difference(both, before), difference(key, before)), difference(value, before));
  step.values.emplace_back("together", together);

  step.blocks.push_back(
      LessonText{"Position 2 becomes [0, 2]. Its key changes, and so does its value. What does that do to the output "
                 "of position 3, "
                 "whose query stays? Let only the key change, or only the value, and the two ways come apart.",
                 "把位置 2 改成 [0, 2]。它的键变了，值也变了。位置 3 "
                 "的查询不变，输出会怎样？让键单独变，再让值单独变，两条路就分开了。"});
  Table table{.caption = {"Which path caused what, at position 3", "位置 3：哪条路造成了什么"},
              .columns = {{"what changes", "改变什么"},
                          {"weights", "权重"},
                          {"output", "输出"},
                          {"change of the output", "输出的变化"}},
              .rows = {}};
  for (const Path& path : paths)
    table.rows.push_back({path.label, fractions(path.weights), decimals(path.output),
                          &path == &paths[0] ? same("") : fractions(difference(path.output, before))});
  table.rows.push_back(
      {LessonText{"what neither does alone", "单独哪一个都做不到的部分"}, same(""), same(""), fractions(together)});
  step.blocks.push_back(std::move(table));
  step.blocks.push_back(LessonText{
      fmt::format(
          "The key decides who is read: with the new key alone, position 2 gets {} instead of {}, and weight is "
          "taken from the others. The value decides what is handed on: with the new value alone no weight moves. "
          "The two changes do not simply add up: {} of the second number comes only when more weight meets the "
          "larger value. Real models are looked into the same way: regard patch replaces keys only, values only "
          "or both.",
          paths[2].weights.items[1].text(), paths[0].weights.items[1].text(), together.items[1].text()),
      fmt::format(
          "键决定读谁：只换键，位置 2 的权重从 {1} 变成 {0}，别的位置相应减少。值决定读到什么：只换值，权重一点不动。"
          "两种变化并不是简单相加：第二个数里有 {2} 要等更大的权重遇上更大的值才会出现。研究真实模型也用同样的办法："
          "regard patch 可以只换键、只换值，或两者都换。",
          paths[2].weights.items[1].text(), paths[0].weights.items[1].text(), together.items[1].text())});

  Exploration explore{.id = "paths",
                      .caption = {"Move the second number of token 2, as its key sees it and as its value does.",
                                  "移动位置 2 的第二个数：键用的那一份，和值用的那一份。"},
                      .readers = {"q3"},
                      .keys = numbered("k", 3),
                      .head = to_small_head(worked_head()),
                      .sliders = {},
                      .checks = {}};
  explore.head.xq = {1, 2, {1, 1}};
  for (const auto& [what, label] :
       {std::pair{"xk", LessonText{"for the key", "用于键"}}, std::pair{"xv", LessonText{"for the value", "用于值"}}})
    explore.sliders.push_back({.label = label,
                               .low = -2,
                               .high = 4,
                               .step = 0.25,
                               .initial = 1,
                               .targets = {{.what = what, .row = 1, .column = 1}}});
  check_on_a_grid(explore, 5);
  step.blocks.push_back(std::move(explore));
  return step;
}

}  // namespace regard
