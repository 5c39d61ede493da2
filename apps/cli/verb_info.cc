#include "destination.h"
#include "inputs.h"
#include "kernels/target.h"
#include "model/state.h"
#include "parallel/parallel_for.h"
#include "report/json_documents.h"
#include "report/views.h"
#include "tensor/error.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {
namespace {

// What a model is can also be told where it cannot run.
std::string target_in_force() {
  try {
    return current_target();
  } catch (const Error& error) {
    if (error.code != ErrorCode::unsupported) throw;
    return "none";
  }
}

}  // namespace

int run_info(const Words& words) {
  Options options;
  Arguments arguments("info", "What a model is: shapes, how it is stored, its tokenizer, and what runs it here.");
  options.declare_model(arguments);
  options.declare_output(arguments, {".json"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;

  const auto path = locate(options.model_name());
  const Checkpoint checkpoint = load_checkpoint(path);
  const Tokenizer tokenizer(checkpoint.tokenizer);
  const InfoResult result{
      .model = summary(options.model_name(), checkpoint.config, path),
      .files = checkpoint.files,
      .bytes = checkpoint.bytes,
      .stored = checkpoint.stored,
      .tokenizer = std::string(tokenizer.kind_name()),
      .targets = available_targets(),
      .target = target_in_force(),
      .threads = thread_count(),
      .cache_bytes_per_token =
          KeyValueCache::bytes_for(checkpoint.config, KeyValueCache::kPageRows) / KeyValueCache::kPageRows};
  deliver(options, {.json = [&](Output& out) { write_json(out, result); },
                    .page = [&](const Terminal& terminal) { return info_page(result, terminal.columns); }});
  return kDone;
}

}  // namespace regard::cli
