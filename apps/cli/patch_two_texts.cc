#include "destination.h"
#include "inputs.h"
#include "kernels/softmax.h"
#include "progress_line.h"
#include "report/patch_result.h"
#include "two_texts.h"
#include "verbs.h"

namespace regard::cli {

int patch_two_texts(const Options& options, const InterventionOptions& intervention, std::int64_t most,
                    const Model& model, const std::filesystem::path& path) {
  ProgressLine progress(options.shows_progress());
  const TwoTextExperiment experiment(model, two_text_request(options, intervention, model), false, &progress);
  const TwoTextRequest& request = experiment.request();
  PatchReport report{.model = summary(options.model_name(), model.config(), path),
                     .tokens = token_pieces(model.tokenizer(), request.target),
                     .row = experiment.row(),
                     .by = measured_by(experiment.measure().metric(), model.tokenizer()),
                     .edits = {},
                     .receivers = {},
                     .patch = patch(experiment, &progress),
                     .before = {},
                     .after = {},
                     .source = token_pieces(model.tokenizer(), request.source)};
  model.checkpoint().check_intact();
  progress.clear();
  for (const PlacedEdit& edit : request.edits) report.edits.push_back(to_string(edit));
  const auto best = [&](const std::vector<float>& logits) {
    return best_candidates(model.tokenizer(), logits, log_sum_exp(logits.data(), std::ssize(logits)), most);
  };
  report.before = best(report.patch.before);
  report.after = best(report.patch.after);

  deliver(options, report);
  return kDone;
}

}  // namespace regard::cli
