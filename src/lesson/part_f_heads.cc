// Several heads side by side, heads that share keys and values, and keys of another text.

#include <fmt/format.h>

#include "lesson/attend.h"
#include "lesson/parts.h"
#include "lesson/worked_head.h"

namespace regard {
namespace {

WorkedHead second_head() {
  WorkedHead head = worked_head();
  head.wq = {2, 2, {0, 1, 1, 0}};
  head.wv = {2, 2, {1, 0, 0, 1}};
  return head;
}

Tensor<float, 2> to_floats(const Numbers& values) {
  Tensor<float, 2> result({values.shape[0], values.shape[1]});
  for (std::size_t i = 0; i < values.items.size(); ++i) result.data()[i] = static_cast<float>(values.items[i].value);
  return result;
}

void add_two_heads(Step& step) {
  const WorkedResult first = work(worked_head()), second = work(second_head());
  const RationalMatrix wo(4, 2, {Rational(1, 2), 0, 0, Rational(1, 2), Rational(1, 2), 0, 0, Rational(1, 2)});
  RationalMatrix beside(3, 4);
  Numbers concat{.shape = {3, 4}, .items = {}};
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < 4; ++c) {
      const WorkedResult& head = c < 2 ? first : second;
      beside(r, c) = head.exact_outputs(r, c % 2);
      concat.items.push_back(head.outputs(r, c % 2));
    }
  const Numbers output =
      numbers(project(to_floats(concat).view(), to_tensor(to_small_matrix(wo)).view()).view(), beside * wo);
  const std::vector<std::string> rows = numbered("o", 3), q = numbered("q", 3), k = numbered("k", 3);
  step.blocks.push_back(LessonText{
      "One head reads by one question. Several heads read the same rows at once, each with matrices of its own. The "
      "second "
      "head here turns the two numbers of the query around, so it looks for what is unlike. Their outputs, 3 × 2 each, "
      "are "
      "put side by side to 3 × 4, and a last matrix W_O, 4 × 2, mixes them to 3 × 2.",
      "一个头只问一个问题。多个头同时读同样的行，各用各的矩阵。这里第二个头把查询的两个数对调，于是它找的是“不像”的。"
      "两个头的输出各为 3 × 2，并排成 3 × 4，再由最后一个矩阵 W_O（4 × 2）混合成 3 × 2。"});
  step.blocks.push_back(MatrixRow{
      .caption = {"Two heads, two patterns", "两个头，两种读法"},
      .matrices = {{.name = {"weights, head 1", "权重，头 1"}, .numbers = first.weights, .rows = q, .columns = k},
                   {.name = {"weights, head 2", "权重，头 2"}, .numbers = second.weights, .rows = q, .columns = k}}});
  step.blocks.push_back(MatrixRow{
      .caption = {"side by side × W_O = output", "并排 × W_O = 输出"},
      .matrices = {{.name = {"both heads, 3 × 4", "两个头，3 × 4"}, .numbers = concat, .rows = rows, .columns = {}},
                   {.name = same("W_O, 4 × 2"), .numbers = exactly(wo), .rows = {}, .columns = {}},
                   {.name = {"output, 3 × 2", "输出，3 × 2"}, .numbers = output, .rows = rows, .columns = {}}}});
  step.values.emplace_back("head_1", first.outputs);
  step.values.emplace_back("head_2", second.outputs);
  step.values.emplace_back("head_2_weights", second.weights);
  step.values.emplace_back("side_by_side", concat);
  step.values.emplace_back("w_o", exactly(wo));
  step.values.emplace_back("output", output);

  // Both heads reading one key/value head: the queries of both, the keys and values of the first.
  Tensor<float, 3> queries({3, 2, 2});
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < 2; ++c) {
      queries(r, 0, c) = static_cast<float>(first.q(r, c).value);
      queries(r, 1, c) = static_cast<float>(second.q(r, c).value);
    }
  const Tensor<float, 2> keys = to_floats(first.k), values = to_floats(first.v);
  const Attended grouped = attend(queries.view(), View<const float, 3>(keys.data(), {3, 1, 2}),
                                  View<const float, 3>(values.data(), {3, 1, 2}));
  WorkedHead shared = second_head();
  shared.wv = worked_head().wv;
  const WorkedResult apart = work(shared);
  Numbers second_grouped{.shape = {3, 2}, .items = {}};
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < 2; ++c)
      second_grouped.items.push_back({grouped.outputs(r, 1, c), apart.outputs(r, c).exact});
  step.values.emplace_back("grouped_head_2", second_grouped);
  step.blocks.push_back(LessonText{
      "Keys and values are what has to be kept for every token, so heads share them in groups: several query heads "
      "read one "
      "key/value head. Nothing else changes. Head 2 with the keys and values of head 1:",
      "每个词元都要留着键和值，所以头分成组来共用：几个查询头读同一个键值头，其他都不变。头 2 用头 1 的键和值："});
  step.blocks.push_back(MatrixRow{.caption = {"Two query heads, one key/value head", "两个查询头，一个键值头"},
                                  .matrices = {{.name = {"output of head 2, grouped", "头 2 的输出（分组）"},
                                                .numbers = second_grouped,
                                                .rows = rows,
                                                .columns = {}}}});
}

void add_cache_bytes(Step& step) {
  struct Kind {
    const char* name;
    std::int64_t heads, groups, channels;
  };
  constexpr std::int64_t kBytes = 2;  // bf16
  Table table{.caption = {"Bytes of keys and values per token and layer, stored as 16-bit numbers",
                          "每个词元、每层的键值字节数（16 位存储）"},
              .columns = {{"model", "模型"},
                          {"query / key-value heads", "查询头 / 键值头"},
                          {"numbers per head", "每头的数"},
                          {"without groups", "不分组"},
                          {"with groups", "分组"},
                          {"saved", "省下"}},
              .rows = {}};
  Numbers bytes{.shape = {2, 2}, .items = {}}, saved{.shape = {2}, .items = {}};
  for (const Kind& kind : {Kind{"Qwen3-0.6B", 16, 8, 128}, Kind{"Qwen2-like", 8, 2, 64}}) {
    const std::int64_t all = 2 * kind.heads * kind.channels * kBytes,
                       grouped = 2 * kind.groups * kind.channels * kBytes;
    const Rational share = Rational(all - grouped, all);
    table.rows.push_back({same(kind.name), same(fmt::format("{} / {}", kind.heads, kind.groups)),
                          exactly(kind.channels), exactly(all), exactly(grouped),
                          same(fmt::format("{} = {}", all - grouped, share.text()))});
    bytes.items.push_back(exactly(all));
    bytes.items.push_back(exactly(grouped));
    saved.items.push_back(exactly(share));
  }
  step.blocks.push_back(std::move(table));
  step.values.emplace_back("cache_bytes", bytes);
  step.values.emplace_back("cache_saved", saved);
}

void add_cross(Step& step) {
  WorkedHead head = worked_head();
  head.xk = head.xv = {2, 2, {1, 1, 2, 0}};
  const WorkedResult cross = work(head);
  step.blocks.push_back(
      LessonText{"So far a text read itself: self-attention. Where queries come from one text and keys and values from "
                 "another, as in "
                 "translation, it is cross-attention. The formula is the same, only the weights are no longer square: "
                 "3 rows reading 2 "
                 "positions of a source give 3 × 2.",
                 "到这里都是文本读自己：自注意力。如果查询来自一段文本，键和值来自另一段（例如翻译），就是交叉注意力。"
                 "公式一样，只是权重不再是方阵："
                 "3 行读来源里的 2 个位置，得到 3 × 2。"});
  const std::vector<std::string> sources = numbered("s", 2);
  step.blocks.push_back(MatrixRow{
      .caption = {"Three rows read a source of two positions", "三行读一段只有两个位置的来源"},
      .matrices = {
          {.name = {"source", "来源"}, .numbers = exactly(head.xk), .rows = sources, .columns = {}},
          {.name = {"weights", "权重"}, .numbers = cross.weights, .rows = numbered("q", 3), .columns = sources},
          {.name = {"output", "输出"}, .numbers = cross.outputs, .rows = numbered("o", 3), .columns = {}}}});
  step.values.emplace_back("cross_weights", cross.weights);
  step.values.emplace_back("cross_outputs", cross.outputs);
}

}  // namespace

Step heads_and_groups(const LessonRequest&) {
  Step step;
  add_two_heads(step);
  add_cache_bytes(step);
  add_cross(step);
  return step;
}

}  // namespace regard
