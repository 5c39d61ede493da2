// Pairs grow with the square; memory need not.

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "lesson/attend.h"
#include "lesson/measured_cost.h"
#include "lesson/parts.h"

namespace regard {
namespace {

constexpr std::int64_t kChannels = 64, kShortest = 512, kLongest = 32768;

void add_pairs(Step& step) {
  Numbers lengths{.shape = {2}, .items = {}}, pairs{.shape = {2}, .items = {}};
  for (const std::int64_t n : {std::int64_t{100}, std::int64_t{200}}) {
    lengths.items.push_back(exactly(n));
    pairs.items.push_back(exactly(pairs_read(n, n, false)));
  }
  step.blocks.push_back(LessonText{
      fmt::format("Every position reads every other: n positions make n × n pairs. For n = {} the engine counts {}, "
                  "for n = {} it "
                  "counts {}: twice as long, four times the work.",
                  lengths.items[0].text(), pairs.items[0].text(), lengths.items[1].text(), pairs.items[1].text()),
      fmt::format(
          "每个位置都读每个位置：n 个位置就有 n × n 对。n = {} 时引擎数出 {} 对，n = {} 时 {} 对：长一倍，工作是四倍。",
          lengths.items[0].text(), pairs.items[0].text(), lengths.items[1].text(), pairs.items[1].text())});
  step.values.emplace_back("n", lengths);
  step.values.emplace_back("pairs", pairs);
}

struct Series {
  std::vector<double> positions, seconds, megabytes;
  const char* stopped = nullptr;  // why it ends before kLongest: "time", "memory"
};

// Stops before what would take longer than is left, judged by the last length: twice as long is four times the time.
template <typename Way>
Series measure(const LessonRequest& request, double seconds, const Way& way, bool square) {
  Series series;
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t n = kShortest; n <= kLongest; n *= 2) {
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (square && square_bytes(n) > request.bytes) {
      series.stopped = "memory";
      break;
    }
    if (!series.seconds.empty() && spent + 4 * series.seconds.back() > seconds) {
      series.stopped = "time";
      break;
    }
    if (request.progress) request.progress->at("measuring", n, kLongest);
    const Cost cost = way(n, kChannels);
    series.positions.push_back(static_cast<double>(n));
    series.seconds.push_back(cost.seconds);
    series.megabytes.push_back(static_cast<double>(cost.bytes) / 1e6);
  }
  return series;
}

LessonText ended(const Series& series, const LessonText& way, const LessonRequest& request) {
  if (!series.stopped) return {};
  const std::string last = fmt::format("{}", series.positions.back());
  if (std::string_view(series.stopped) == "memory")
    return {fmt::format(" {} ends at {}: the next would take {} MB of memory, more than the {} MB allowed here.",
                        way.en, last, square_bytes(static_cast<std::int64_t>(series.positions.back()) * 2) / 1000000,
                        request.bytes / 1000000),
            fmt::format("{}到 {} 为止：再长一倍要 {} MB 内存，超过这里允许的 {} MB。", way.zh, last,
                        square_bytes(static_cast<std::int64_t>(series.positions.back()) * 2) / 1000000,
                        request.bytes / 1000000)};
  return {fmt::format(" {} ends at {}: the next would take longer than the time allowed here.", way.en, last),
          fmt::format("{}到 {} 为止：再长一倍就超过了这里允许的时间。", way.zh, last)};
}

}  // namespace

Step what_it_costs(const LessonRequest& request) {
  Step step;
  add_pairs(step);
  kernel_way(kShortest, kChannels);      // threads start, and pages are there
  constexpr double kKernelShare = 0.75;  // of the time: it goes further
  const Series kernel = measure(request, request.seconds * kKernelShare, kernel_way, false),
               square = measure(request, request.seconds * (1 - kKernelShare), square_way, true);
  const LessonText square_name{"S × S written out", "写出 S × S"}, kernel_name{"this kernel", "本引擎的核"};
  const LessonText a = ended(square, {"The S × S way", "S × S 的办法"}, request),
                   b = ended(kernel, {"The kernel", "本引擎"}, request);
  step.blocks.push_back(LessonText{fmt::format("The plain way writes all S × S weights into memory, a softmax row by "
                                               "row, and multiplies. regard's kernel goes "
                                               "through the keys in blocks of 128, keeps for each row its maximum, its "
                                               "sum and its output so far, and corrects "
                                               "them when a larger score comes: the same result, and no square. "
                                               "Measured on this machine with one head of {} "
                                               "channels, nothing masked.{}{}",
                                               kChannels, a.en, b.en),
                                   fmt::format("普通的做法把 S × S 个权重全写进内存，逐行做 softmax，再相乘。regard "
                                               "的核按 128 个键一块往前走，每一行只记住最大值、总和与"
                                               "到目前为止的输出，遇到更大的分数就修正：结果一样，不存方阵。在这台机器"
                                               "上实测，一个头、{} 个通道、没有掩码。{}{}",
                                               kChannels, a.zh, b.zh)});
  step.blocks.push_back(LineChart{
      .caption = {"Seconds", "秒"},
      .x = same("S"),
      .y = {"seconds", "秒"},
      .log_x = true,
      .log_y = true,
      .series = {{square_name, square.positions, square.seconds}, {kernel_name, kernel.positions, kernel.seconds}}});
  step.blocks.push_back(LineChart{
      .caption = {"Memory beside queries, keys, values and outputs, in MB", "查询、键、值、输出之外的内存（MB）"},
      .x = same("S"),
      .y = same("MB"),
      .log_x = true,
      .log_y = true,
      .series = {{square_name, square.positions, square.megabytes},
                 {kernel_name, kernel.positions, kernel.megabytes}}});
  Table table{.caption = {"The same as numbers", "同样的数字"},
              .columns = {same("S"),
                          {"S × S: seconds", "S × S：秒"},
                          {"S × S: MB", "S × S：MB"},
                          {"kernel: seconds", "核：秒"},
                          {"kernel: MB", "核：MB"}},
              .rows = {}};
  const auto cell = [](const std::vector<double>& values, std::size_t i) {
    return i < values.size() ? Table::Cell(Number{values[i], {}}) : Table::Cell(same("–"));
  };
  for (std::size_t i = 0; i < std::max(square.positions.size(), kernel.positions.size()); ++i)
    table.rows.push_back({exactly(kShortest << i), cell(square.seconds, i), cell(square.megabytes, i),
                          cell(kernel.seconds, i), cell(kernel.megabytes, i)});
  step.blocks.push_back(std::move(table));
  for (const auto& [name, series] : {std::pair{"square", &square}, {"kernel", &kernel}}) {
    const std::vector<std::int64_t> shape = {std::ssize(series->positions)};
    step.values.emplace_back(fmt::format("{}_positions", name), numbers(series->positions, shape));
    step.values.emplace_back(fmt::format("{}_seconds", name), numbers(series->seconds, shape));
    step.values.emplace_back(fmt::format("{}_megabytes", name), numbers(series->megabytes, shape));
  }
  return step;
}

}  // namespace regard
