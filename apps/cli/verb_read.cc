#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "destination.h"
#include "inputs.h"
#include "interrupt.h"
#include "interrupt_tap.h"
#include "intervention/edit_tap.h"
#include "intervention/metric.h"
#include "intervention/prepared_edits.h"
#include "intervention_options.h"
#include "kernels/softmax.h"
#include "model/forward.h"
#include "model/taps.h"
#include "progress_line.h"
#include "read_choice.h"
#include "reading/reading_tap.h"
#include "reading/selection.h"
#include "report/estimate.h"
#include "report/read_result.h"
#include "tensor/error.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {
namespace {

// What an edit of the residual leaves of a statistic.
void check_edits(std::span<const Edit> edits, const ReadingRequest& request) {
  for (const Edit& edit : edits)
    if (request.has(Statistic::direct) && (edit.site == EditSite::resid_pre || edit.site == EditSite::resid_post))
      throw Error(ErrorCode::usage,
                  fmt::format("direct effects under '{}': the residual is then no sum of its parts", to_string(edit)),
                  "leave direct out of --stats, or edit attn_out and mlp_out");
}

}  // namespace

int run_read(const Words& words) {
  ReadChoice choice;
  if (!parse(choice, words)) return kDone;
  const Options& options = choice.options;
  const auto path = locate(options.model_name());
  const Model model = load_model(path);
  if (model.encoder() != nullptr) return read_two_texts(choice, model, path);
  for (const auto* option : {&choice.attention, &choice.target, &choice.target_ids})
    if (*option)
      throw Error(ErrorCode::usage, fmt::format("{} has no encoder: it reads one text", model.config().family),
                  "leave --attention and --decoder out");
  const std::vector<std::int32_t> ids = prompt_ids(options, model.tokenizer());
  check_length(ids, model.config());
  const auto tokens = std::ssize(ids);
  const ReadPlan plan = plan_reading(choice, model, ids);
  const std::vector<Edit> edits = choice.intervention.chosen_edits();
  check_edits(edits, plan.request);
  const auto runs = choice.intervention.chosen_runs(options, model);
  announce(options, model, plan.request, tokens);

  ProgressLine progress(options.shows_progress());
  const auto start = std::chrono::steady_clock::now();
  const PreparedEdits prepared(model, ids, runs, edits, &progress);
  EditTap edit_tap(model.config(), {std::span<const Cells>(prepared.cells())});
  State state(model.config(), 1, tokens);
  ReadingTap reading(model, plan.request, ids);
  InterruptTap watch;
  Taps tap({&watch, &edit_tap, &reading});
  // Logits: of the last row, or of the first that is shown where rows say what stands in their own place.
  const std::int64_t next_row = model.config().causal ? tokens - 1 : plan.request.rows.front();
  Tensor<float, 2> at_row({1, model.config().width});
  feed(model, state, ids, 0,
       {.tap = &tap, .progress = &progress, .on_rows = [&](std::int64_t first, View<const float, 2> resid) {
          if (next_row >= first && next_row < first + resid.shape[0])
            std::copy_n(&resid(next_row - first, 0), resid.shape[1], at_row.data());
        }});
  const std::vector<Receipt> receipts = edit_tap.receipts()[0];  // before any layer runs again
  ReadResult result{.model = summary(options.model_name(), model.config(), path),
                    .tokens = token_pieces(model.tokenizer(), ids),
                    .reading = reading.finish(&state, &watch, edits.empty() ? nullptr : &edit_tap),
                    .asked = plan.asked,
                    .next = {},
                    .next_row = next_row,
                    .sink = {}};
  for (std::size_t e = 0; e < edits.size(); ++e) result.edits.emplace_back(to_string(edits[e]), receipts[e]);
  if (model.config().head) {
    Tensor<float, 2> scores({1, model.config().vocabulary});
    logits(model, at_row.view(), scores.view());
    result.next = best_candidates(model.tokenizer(), {scores.data(), static_cast<std::size_t>(scores.size())},
                                  log_sum_exp(scores.data(), scores.size()), kCandidates);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.tokens_per_second = static_cast<double>(tokens) / result.seconds;
  model.checkpoint().check_intact();
  progress.clear();
  result.bytes_of = named_tokens(result.reading, model.tokenizer());
  result.sink = find_sink(result.reading.column_sum.view(), model.config(), result.reading.request.layers);

  constexpr int kFileColumns = 100;
  const auto drawn = [&] {
    return read_page(result, {.width = kFileColumns, .statistics = choice.statistics.has_value()});
  };
  deliver(options, {.json = [&](Output& out) { write_json(out, result); },
                    .page =
                        [&](const Terminal& terminal) {
                          return read_page(result, {.width = terminal.columns,
                                                    .coloured = terminal.colours != Colours::none,
                                                    .statistics = choice.statistics.has_value()});
                        },
                    .files = {{".npz", [&](Output& out) { write_npz(out, result); }},
                              {".csv", [&](Output& out) { write_csv(out, result); }},
                              {".svg", [&](Output& out) { write_svg(out, drawn()); }},
                              {".html", [&](Output& out) { write_html(out, drawn()); }}}});
  return kDone;
}

}  // namespace regard::cli
