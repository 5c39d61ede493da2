#pragma once
// The edits that `generate` makes in the text while it is made.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "intervention/continued_edits.h"
#include "intervention_options.h"
#include "model/model.h"
#include "options.h"
#include "parallel/progress.h"
#include "report/results.h"

namespace regard::cli {

// How long a text may come to be: of an encoder-decoder, what is made of `ids`; else `ids` and what follows.
Continuation continuation_of(const Model& model, const std::vector<std::int32_t>& ids, std::int64_t most_tokens);

// Null where none were given. runs: other texts, by name. Errors: as ContinuedText and ContinuedTwoTexts, before
// anything is made.
std::unique_ptr<ContinuedEdits> generation_edits(const InterventionOptions& intervention, const Model& model,
                                                 const std::vector<std::int32_t>& ids,
                                                 const std::map<std::string, std::vector<std::int32_t>>& runs,
                                                 const Continuation& continuation, Progress* progress);

// Their receipts, for people.
void remark_receipts(const Options& options, const GenerateResult& result);
// Error{usage} for an edit of positions that the text turned out not to have (law 4).
void check_all_matched(const GenerateResult& result);

}  // namespace regard::cli
