#include "two_texts.h"

#include "inputs.h"
#include "model/source.h"
#include "target_text.h"

namespace regard::cli {

TwoTextRequest two_text_request(const Options& options, const InterventionOptions& intervention, const Model& model) {
  TwoTextRequest request;
  request.edits = intervention.chosen_placed_edits();
  request.metric = intervention.chosen_metric(model);
  request.runs = intervention.chosen_runs(options, model);
  intervention.check_runs_are_used(true);
  request.source = prompt_ids(options, model.tokenizer());
  check_length(request.source, model.encoder()->config());
  for (const auto& [name, source] : request.runs) check_length(source, model.encoder()->config());
  const Tensor<float, 2> encoded = encode(*model.encoder(), request.source);
  request.target = target_tokens(model, encoded.view(), intervention.decoder, intervention.decoder_ids);
  check_length(request.target, model.config());
  request.row = intervention.row.value_or(-1);
  return request;
}

}  // namespace regard::cli
