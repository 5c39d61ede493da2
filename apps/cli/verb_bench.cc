#include "destination.h"
#include "interrupt.h"
#include "line.h"
#include "report/bench_report.h"
#include "tensor/error.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {

int run_bench(const Words& words) {
  if (!words.empty() && words[0] == "truth") return run_bench_truth({words.begin() + 1, words.end()});
  Options options;
  std::optional<std::string> only;
  Arguments arguments(
      "bench",
      "How fast this machine runs it: each figure beside what the processor could do in the same run, and "
      "how far the result was from float64.",
      "regard bench --json        regard bench smollm2 --only decode\n"
      "regard bench truth --help: how often each way of explaining names the planted cause");
  options.declare_optional_model(arguments);
  arguments.text("--only", only, "WORD", "the cases whose name holds it");
  options.declare_output(arguments, {".json", ".csv"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;

  const std::string model = options.model ? locate(*options.model).string() : "";
  const bool streams = !options.json && options.outputs.empty();
  const Terminal terminal = options.terminal();
  std::vector<BenchLine> lines;
  bench::run(only.value_or(""), model, [&](const bench::Line& line) {
    throw_if_interrupted();
    lines.push_back({line.name, line.shape, line.unit, line.figure, line.peak, line.fraction, line.error});
    if (!streams) return;
    Page page{.title = "bench", .lines = {}};
    if (lines.size() == 1) page.lines.push_back(bench_heading());
    page.lines.push_back(bench_line(lines.back()));
    print_page(page, terminal);
  });
  if (lines.empty())
    throw Error(ErrorCode::usage, fmt::format("no case is called \"{}\", --only", only.value_or("")),
                "regard bench without --only shows all; cases that run a model need one");
  if (!streams)
    deliver(options, {.json = [&](Output& out) { write_json(out, lines); },
                      .page = nullptr,
                      .files = {{".csv", [&](Output& out) { write_csv(out, lines); }}}});
  return kDone;
}

}  // namespace regard::cli
