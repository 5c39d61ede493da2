#include "destination.h"
#include "inputs.h"
#include "progress_line.h"
#include "training/model_folder.h"
#include "truth.h"
#include "verbs.h"
#include "weights/catalogue.h"
#include "weights/default_model.h"

namespace regard::cli {

int run_bench_truth(const Words& words) {
  constexpr std::int64_t kMostCount = 100'000;
  Options options;
  std::optional<std::int64_t> count;
  Arguments arguments("bench truth",
                      "How often each way of explaining an answer names the word that it was planted to depend on, on "
                      "held-out sentences of the language that the default model was trained on.",
                      "regard bench truth -o docs/truth.md        regard bench truth my-model/ --count 200 --json");
  options.declare_optional_model(arguments);
  arguments.integer("--count", count, 1, kMostCount,
                    fmt::format("sentences of each kind in each language (default: {})", kTruthCount));
  options.declare_output(arguments, {".json", ".md"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;
  if (!options.model) options.model = kDefaultModel;

  const auto path = locate(options.model_name());
  const Model model = load_model(path);
  ProgressLine progress(options.shows_progress());
  TruthTable table = bench::truth(model, count.value_or(kTruthCount), &progress);
  table.model = summary(options.model_name(), model.config(), path);
  table.recipe = recipe_of(path);
  progress.clear();
  deliver(options, {.json = [&](Output& out) { write_json(out, table); },
                    .page = [&](const Terminal&) { return truth_page(table); },
                    .files = {{".md", [&](Output& out) { write_markdown(out, table); }}}});
  return kDone;
}

}  // namespace regard::cli
