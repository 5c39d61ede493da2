#include <chrono>

#include "destination.h"
#include "inputs.h"
#include "kernels/softmax.h"
#include "progress_line.h"
#include "report/two_texts_why.h"
#include "tensor/error.h"
#include "two_texts.h"
#include "verbs.h"

namespace regard::cli {
int why_two_texts(const Options& options, const InterventionOptions& intervention, bool heads, const Model& model,
                  const std::filesystem::path& path) {
  const TwoTextRequest asked = two_text_request(options, intervention, model);
  if (!asked.runs.empty())
    throw Error(ErrorCode::unsupported, "why of an encoder-decoder has no contrast",
                "regard patch takes values from another source: --contrast TEXT --edit \"patch z from=contrast\"");
  ProgressLine progress(options.shows_progress());
  const auto start = std::chrono::steady_clock::now();
  TwoTextWhy result = why(
      model, {.source = asked.source, .target = asked.target, .metric = asked.metric, .row = asked.row, .heads = heads},
      &progress);
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  model.checkpoint().check_intact();
  progress.clear();
  TwoTextWhyReport report{.model = summary(options.model_name(), model.config(), path),
                          .source = token_pieces(model.tokenizer(), asked.source),
                          .tokens = token_pieces(model.tokenizer(), asked.target),
                          .by = measured_by(result.metric, model.tokenizer()),
                          .why = std::move(result)};
  const std::vector<float>& logits = report.why.logits;
  report.next = best_candidates(model.tokenizer(), logits, log_sum_exp(logits.data(), std::ssize(logits)), kCandidates);

  constexpr int kFileColumns = 100;
  const auto timed = [&]() -> const TwoTextWhyReport& {  // for what is printed, after the files
    report.seconds = took;
    return report;
  };
  const auto drawn = [&] { return why_page(report, {.width = kFileColumns}); };
  deliver(options, {.json = [&](Output& out) { write_json(out, report); },
                    .printed_json = [&](Output& out) { write_json(out, timed()); },
                    .page =
                        [&](const Terminal& terminal) {
                          return why_page(timed(),
                                          {.width = terminal.columns, .coloured = terminal.colours != Colours::none});
                        },
                    .files = {{".csv", [&](Output& out) { write_csv(out, report); }},
                              {".svg", [&](Output& out) { write_svg(out, drawn()); }},
                              {".html", [&](Output& out) { write_html(out, drawn()); }}}});
  return kDone;
}

}  // namespace regard::cli
