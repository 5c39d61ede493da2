#pragma once
// why, patch and sweep of an encoder-decoder: two texts, of which the decoder's is given or made.

#include <filesystem>
#include <string>

#include "intervention/two_texts.h"
#include "intervention_options.h"
#include "model/model.h"
#include "options.h"
#include "report/patch_result.h"

namespace regard::cli {

// The source (-p, -f, --ids), the decoder's text (--decoder, --decoder-ids, or what the model says of the source), the
// edits, the other sources (--run, --contrast) and the metric.
TwoTextRequest two_text_request(const Options& options, const InterventionOptions& intervention, const Model& model);

int why_two_texts(const Options& options, const InterventionOptions& intervention, bool heads, const Model& model,
                  const std::filesystem::path& path);
// most: candidates that are written, -1: all.
int patch_two_texts(const Options& options, const InterventionOptions& intervention, std::int64_t most,
                    const Model& model, const std::filesystem::path& path);

// What patch found, of one text or two, as asked for.
void deliver(const Options& options, const PatchReport& report);

int sweep_two_texts(const Options& options, const InterventionOptions& intervention, const std::string& each,
                    const Model& model, const std::filesystem::path& path);

}  // namespace regard::cli
