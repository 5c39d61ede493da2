#include "destination.h"
#include "inputs.h"
#include "intervention_options.h"
#include "kernels/softmax.h"
#include "progress_line.h"
#include "report/patch_result.h"
#include "tensor/error.h"
#include "two_texts.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {
namespace {

std::vector<Candidate> candidates(const Tokenizer& tokenizer, const std::vector<float>& logits, std::int64_t top) {
  if (logits.empty()) return {};  // a model without a head
  return best_candidates(tokenizer, logits, log_sum_exp(logits.data(), std::ssize(logits)), top);
}

}  // namespace

void deliver(const Options& options, const PatchReport& report) {
  constexpr int kFileColumns = 100;
  const auto drawn = [&] { return patch_page(report, {.width = kFileColumns}); };
  deliver(options, {.json = [&](Output& out) { write_json(out, report); },
                    .page = [&](const Terminal& terminal) { return patch_page(report, {.width = terminal.columns}); },
                    .files = {{".csv", [&](Output& out) { write_csv(out, report); }},
                              {".svg", [&](Output& out) { write_svg(out, drawn()); }},
                              {".html", [&](Output& out) { write_html(out, drawn()); }}}});
}

int run_patch(const Words& words) {
  Options options;
  InterventionOptions intervention;
  std::optional<std::string> top;
  std::vector<std::string> receivers;
  Arguments arguments(
      "patch", "One run with edits, before and after, with a receipt for each edit.",
      "EDIT is ACTION SITE [layer= head= kv_head= row= key=], each 5, 2:7, -1, 1,4 or *; left out: all:\n"
      "  block edge; scale edge|z|v|attn_out|mlp_out by=X; freeze, uniform, permute pattern;\n"
      "  zero, mean z|v|attn_out|mlp_out|resid_pre|resid_post;\n"
      "  patch q|k|v|z|pattern|attn_out|mlp_out|resid_pre|resid_post from=NAME\n"
      "of an encoder-decoder also attention=encoder, decoder (the default) or cross: cross has edge, z and attn_out, "
      "its\n"
      "  rows are the decoder's, its keys the source's; a run that values come from is another source\n"
      "regard patch smollm2 -p \"The capital of France is\" --edit \"block edge row=-1 key=3\"");
  options.declare_model(arguments);
  options.declare_text(arguments);
  intervention.declare_edits(arguments);
  intervention.declare_contrast(arguments);
  intervention.declare_metric(arguments);
  intervention.declare_decoder(arguments);
  arguments.texts(
      "--to", receivers, "SITE ...",
      "path patching: what the edits change arrives only here, \"q layer=9 head=9\", every other head is kept "
      "as it was (may be repeated)");
  arguments.text("--top", top, "N|all", "how many candidates (default 20)");
  options.declare_output(arguments, {".json", ".csv", ".svg", ".html"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;
  const std::int64_t most = !top ? 20 : *top == "all" ? -1 : parse_integer("--top", *top, 1, INT32_MAX);
  if (intervention.edits.empty())
    throw Error(ErrorCode::usage, "nothing to change", "give --edit EDIT, e.g. --edit \"zero z layer=10 head=3\"");

  const auto path = locate(options.model_name());
  const Model model = load_model(path);
  if (model.encoder() != nullptr) {
    if (!receivers.empty())
      throw Error(ErrorCode::unsupported, "path patching of an encoder-decoder is not supported", "leave --to out");
    return patch_two_texts(options, intervention, most, model, path);
  }
  ProgressLine progress(options.shows_progress());
  ExperimentRequest request = intervention.request(options, model);
  for (const std::string& receiver : receivers) request.receivers.push_back(parse_receiver(receiver));
  const Experiment experiment(model, std::move(request), false, &progress);
  PatchReport report{.model = summary(options.model_name(), model.config(), path),
                     .tokens = token_pieces(model.tokenizer(), experiment.ids()),
                     .row = experiment.measure().of_all_rows() ? -1 : experiment.row(),
                     .by = measured_by(experiment.measure().metric(), model.tokenizer()),
                     .edits = {},
                     .receivers = receivers,
                     .patch = patch(experiment, &progress),
                     .before = {},
                     .after = {}};
  model.checkpoint().check_intact();
  progress.clear();
  for (const Edit& edit : experiment.edits()) report.edits.push_back(to_string(edit));
  report.before = candidates(model.tokenizer(), report.patch.before, most);
  report.after = candidates(model.tokenizer(), report.patch.after, most);

  deliver(options, report);
  return kDone;
}

}  // namespace regard::cli
