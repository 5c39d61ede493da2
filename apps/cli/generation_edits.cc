#include "generation_edits.h"

#include <algorithm>
#include <limits>

#include "destination.h"
#include "inputs.h"
#include "intervention/continued_two_texts.h"
#include "report/phrases.h"
#include "tensor/error.h"
#include "text/display.h"

namespace regard::cli {

Continuation continuation_of(const Model& model, const std::vector<std::int32_t>& ids, std::int64_t most_tokens) {
  const std::int64_t prompt = model.encoder() != nullptr ? 1 : std::ssize(ids);
  const std::int64_t context = model.config().context;  // 0: any length
  const std::int64_t room = (context > 0 ? context : std::numeric_limits<std::int64_t>::max()) - prompt;
  // The last token that is made is not read.
  return {.rows = prompt + std::min(room, std::max<std::int64_t>(0, most_tokens - 1)),
          .planned_length = prompt + std::min(room, most_tokens)};
}

std::unique_ptr<ContinuedEdits> generation_edits(const InterventionOptions& intervention, const Model& model,
                                                 const std::vector<std::int32_t>& ids,
                                                 const std::map<std::string, std::vector<std::int32_t>>& runs,
                                                 const Continuation& continuation, Progress* progress) {
  if (intervention.edits.empty()) return nullptr;
  if (model.encoder() == nullptr)
    return std::make_unique<ContinuedText>(model, ids, runs, intervention.chosen_edits(), continuation, progress);
  for (const auto& [name, source] : runs) check_length(source, model.encoder()->config());
  return std::make_unique<ContinuedTwoTexts>(model, ids, runs, intervention.chosen_placed_edits(), continuation,
                                             progress);
}

void remark_receipts(const Options& options, const GenerateResult& result) {
  for (const auto& [edit, receipt] : result.edits)
    remark(options, fmt::format("{}   {} cell{} named, {} changed", display(edit), grouped(receipt.matched),
                                receipt.matched == 1 ? "" : "s", grouped(receipt.changed)));
}

void check_all_matched(const GenerateResult& result) {
  for (const auto& [edit, receipt] : result.edits)
    if (receipt.matched == 0)
      throw Error(ErrorCode::usage, fmt::format("edit '{}' matched nothing: the text ended before it", edit),
                  "it was kept; name positions that it has");
}

}  // namespace regard::cli
