#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "destination.h"
#include "inputs.h"
#include "intervention/sweep.h"
#include "intervention/why.h"
#include "intervention_options.h"
#include "kernels/softmax.h"
#include "model/forward.h"
#include "progress_line.h"
#include "reading/reading_tap.h"
#include "report/estimate.h"
#include "report/phrases.h"
#include "report/why_result.h"
#include "tensor/error.h"
#include "two_texts.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kConfirmed = 8;  // of a screen

// Rows that pass through a whole layer's products for all what-ifs, in units of rows through the whole model.
double passes(const WhyRequest& request, const ModelConfig& config, std::int64_t row) {
  const auto tokens = static_cast<double>(request.ids.size());
  const bool all = of_all_rows(request.metric.kind);
  const auto before = all ? tokens - 1 : static_cast<double>(row), seen = before + 1;
  double rows = (all ? 0 : before) + before * seen / 2;  // hide from the last; from all later ones
  if (!request.contrast.empty()) rows += 3 * seen * (seen + 1) / 2;
  if (!config.causal)  // every row passes each time
    rows = ((all ? 1 : 2) * tokens + (request.contrast.empty() ? 0 : 3 * tokens)) * tokens;
  if (request.confirm && before > 0) rows *= std::min(1.0, static_cast<double>(*request.confirm) / before);
  // A head of layer l needs the layers from l on: half of them, on average.
  if (request.heads)
    rows += static_cast<double>(config.heads * (config.layers + 1)) / 2 * (config.causal ? seen : tokens);
  return rows;
}

void announce(const Options& options, const Model& model, const WhyRequest& request, std::int64_t bytes) {
  const std::int64_t tokens = std::ssize(request.ids);
  const std::int64_t row = request.row < 0 ? request.row + tokens : request.row;
  if (row < 0 || row >= tokens) return;  // refused where it is used
  const double once = estimated_seconds(model, {}, tokens) / static_cast<double>(tokens);
  const double seconds = once * passes(request, model.config(), row);
  if (seconds < kLongSeconds) return;
  const std::int64_t work = Sweep::bytes_for(model.config(), tokens, request.batch_rows);
  remark(options, fmt::format("regard: {} what-ifs take about {:.0f} s and {} beside the file",
                              grouped(what_ifs_of(request, model.config())), seconds, human_bytes(bytes + work)));
}

// What the report needs of the clean run beside the causes: the sink and the next token.
void read_clean_run(const Model& model, const WhyRequest& request, Progress& progress, WhyReport& report) {
  const auto tokens = std::ssize(request.ids);
  ReadingRequest wanted;
  wanted.statistics = {Statistic::column_sum};
  ReadingTap reading(model, resolve(wanted, model.config(), tokens), request.ids);
  State state(model.config(), 1, tokens);
  Tensor<float, 2> at_row({1, model.config().width});
  const std::int64_t row = report.why.row;
  feed(model, state, request.ids, 0,
       {.tap = &reading, .progress = &progress, .on_rows = [&](std::int64_t first, View<const float, 2> resid) {
          if (row >= first && row < first + resid.shape[0])
            std::copy_n(&resid(row - first, 0), resid.shape[1], at_row.data());
        }});
  const Reading read = reading.finish();
  report.sink = find_sink(read.column_sum.view(), model.config(), read.request.layers);
  if (row < 0) return;  // nothing is said at any one row
  std::vector<float> scores(static_cast<std::size_t>(model.config().vocabulary));
  logits(model, at_row.view(), View<float, 2>(scores.data(), {1, std::ssize(scores)}));
  report.next = best_candidates(model.tokenizer(), scores, log_sum_exp(scores.data(), std::ssize(scores)), kCandidates);
}

}  // namespace

int run_why(const Words& words) {
  Options options;
  InterventionOptions intervention;
  bool no_heads = false, screen = false;
  std::optional<std::int64_t> confirm;
  Arguments arguments("why",
                      "What an answer depends on: the effect of hiding each token and each head, beside attention.",
                      "Of an encoder-decoder the source is -p, and its three attentions are shown apart.\n"
                      "regard why smollm2 -p \"When Mary and John went to the store, John gave a drink to\" \\\n"
                      "  --token \" Mary\" --against \" John\" -o why.html");
  options.declare_model(arguments);
  options.declare_text(arguments);
  intervention.declare_contrast(arguments);
  intervention.declare_metric(arguments);
  intervention.declare_decoder(arguments);
  arguments.flag("--no-heads", no_heads, "leave out what each head does: most of the time goes there");
  arguments.flag("--screen", screen,
                 "rank all tokens by attribution patching (one pass back), then hide only the best, exactly");
  arguments.integer("--confirm", confirm, 1, 1'000'000, "how many of them --screen hides (default: 8)");
  options.declare_output(arguments, {".json", ".csv", ".svg", ".html"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;

  if (confirm && !screen)
    throw Error(ErrorCode::usage, "--confirm says how many tokens --screen hides, and there is no --screen",
                "give both, or neither: then every token is hidden");

  const auto path = locate(options.model_name());
  const Model model = load_model(path);
  if (model.encoder() != nullptr && screen)
    throw Error(ErrorCode::unsupported, fmt::format("--screen does not know {}", model.config().family),
                "leave it out: every token is hidden then");
  if (model.encoder() != nullptr) return why_two_texts(options, intervention, !no_heads, model, path);
  ExperimentRequest experiment = intervention.request(options, model);
  experiment.sites = Sweep::sites();
  const std::int64_t bytes = Experiment::bytes_needed(model.config(), experiment);
  WhyRequest request{.ids = experiment.ids,
                     .contrast = {},
                     .metric = experiment.metric,
                     .row = experiment.row,
                     .contrast_row = experiment.contrast_row};
  if (const auto contrast = experiment.runs.find("contrast"); contrast != experiment.runs.end())
    request.contrast = contrast->second;
  request.heads = !no_heads;
  if (screen) request.confirm = confirm.value_or(kConfirmed);
  announce(options, model, request, bytes);

  ProgressLine progress(options.shows_progress());
  const auto start = std::chrono::steady_clock::now();
  WhyResult result = why(model, request, &progress);
  WhyReport report{.model = summary(options.model_name(), model.config(), path),
                   .tokens = token_pieces(model.tokenizer(), request.ids),
                   .contrast_tokens = token_pieces(model.tokenizer(), request.contrast),
                   .by = measured_by(result.metric, model.tokenizer()),
                   .why = std::move(result)};
  read_clean_run(model, request, progress, report);
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  model.checkpoint().check_intact();
  progress.clear();

  constexpr int kFileColumns = 100;
  const auto timed = [&]() -> const WhyReport& {  // for what is printed, after the files
    report.seconds = took;
    return report;
  };
  deliver(options, {.json = [&](Output& out) { write_json(out, report); },
                    .printed_json = [&](Output& out) { write_json(out, timed()); },
                    .page =
                        [&](const Terminal& terminal) {
                          return why_page(timed(),
                                          {.width = terminal.columns, .coloured = terminal.colours != Colours::none});
                        },
                    .files = {{".csv", [&](Output& out) { write_csv(out, report); }},
                              {".svg", [&](Output& out) { write_svg(out, why_page(report, {.width = kFileColumns})); }},
                              {".html", [&](Output& out) { write_why_html(out, report); }}}});
  return kDone;
}

}  // namespace regard::cli
