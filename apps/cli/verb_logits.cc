#include <algorithm>
#include <limits>

#include "destination.h"
#include "inputs.h"
#include "intervention/metric.h"
#include "kernels/softmax.h"
#include "model/forward.h"
#include "progress_line.h"
#include "reading/selection.h"
#include "report/json_documents.h"
#include "report/tables.h"
#include "report/views.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {

int run_logits(const Words& words) {
  Options options;
  std::optional<std::string> top;
  std::optional<std::int64_t> at;
  Arguments arguments("logits",
                      "What comes next, with logits and log-probabilities, and how likely each token was. Of a model "
                      "that reads both ways: what stands in place of the mask token.");
  options.declare_model(arguments);
  options.declare_text(arguments);
  arguments.text("--top", top, "N|all", "how many candidates (default 20)");
  arguments.integer("--at", at, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
                    "after this position (or in its place) instead of the last; -1 counts from the end");
  options.declare_output(arguments, {".json", ".csv", ".npz"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;
  const std::int64_t candidates = !top ? 20 : *top == "all" ? -1 : parse_integer("--top", *top, 1, INT32_MAX);

  const auto path = locate(options.model_name());
  const Model model = load_model(path);
  const std::vector<std::int32_t> ids = prompt_ids(options, model.tokenizer());
  check_length(ids, model.config());
  require_head(model.config(), "there are no logits");
  const std::int64_t row = select({at ? *at : default_row(model, ids)}, std::ssize(ids), "row").front();

  ProgressLine progress(options.shows_progress());
  State state(model.config(), 1, static_cast<std::int64_t>(ids.size()));
  TokenLogprobs logprobs(model, ids);
  Tensor<float, 2> at_row({1, model.config().width}), scores({1, model.config().vocabulary});
  feed(model, state, ids, 0, {.progress = &progress, .on_rows = [&](std::int64_t first, View<const float, 2> resid) {
                                if (model.config().causal) logprobs.rows(first, resid);
                                if (row >= first && row < first + resid.shape[0])
                                  std::copy_n(&resid(row - first, 0), resid.shape[1], at_row.data());
                              }});
  logits(model, at_row.view(), scores.view());
  model.checkpoint().check_intact();
  progress.clear();

  LogitsResult result{.model = summary(options.model_name(), model.config(), path),
                      .tokens = token_pieces(model.tokenizer(), ids),
                      .next = {},
                      .row = row,
                      .log_sum_exp = log_sum_exp(scores.data(), scores.size()),
                      .token_logprob = model.config().causal ? logprobs.values() : std::vector<float>()};
  const std::span<const float> values(scores.data(), static_cast<std::size_t>(scores.size()));
  result.next = best_candidates(model.tokenizer(), values, result.log_sum_exp, candidates);
  deliver(options, {.json = [&](Output& out) { write_json(out, result); },
                    .page =
                        [&](const Terminal& terminal) {
                          return logits_page(result, terminal.columns, terminal.colours != Colours::none);
                        },
                    .files = {{".csv", [&](Output& out) { write_csv(out, result); }},
                              {".npz", [&](Output& out) { write_npz(out, result, values); }}}});
  return kDone;
}

}  // namespace regard::cli
