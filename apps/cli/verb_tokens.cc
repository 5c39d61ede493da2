#include "destination.h"
#include "inputs.h"
#include "report/json_documents.h"
#include "report/tables.h"
#include "report/views.h"
#include "tensor/error.h"
#include "verbs.h"
#include "weights/catalogue.h"
#include "weights/gguf.h"

namespace regard::cli {
namespace {

// The whole description where regard can run the model; for another architecture, which may still have a tokenizer that
// regard knows, its names.
ModelSummary describe(const std::string& name, const std::filesystem::path& path) {
  try {
    return summary(name, load_checkpoint(path).config, path);
  } catch (const Error& error) {
    if (error.code != ErrorCode::unsupported) throw;
  }
  const MappedFile mapped(path);
  const GgufFile file = read_gguf(mapped);
  ModelConfig config;
  config.family = std::string(file.find_string("general.architecture").value_or(""));
  config.name = std::string(file.find_string("general.name").value_or(""));
  ModelSummary model = summary(name, config, path);
  model.config.reset();
  return model;
}

}  // namespace

int run_tokens(const Words& words) {
  Options options;
  Arguments arguments("tokens", "How a text splits into tokens: ids, bytes and text of each.");
  options.declare_model(arguments);
  options.declare_text(arguments);
  options.declare_output(arguments, {".json", ".csv"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;

  const auto path = locate(options.model_name());
  const Tokenizer tokenizer(load_tokenizer(path));
  const TokensResult result{.model = describe(options.model_name(), path),
                            .tokens = token_pieces(tokenizer, prompt_ids(options, tokenizer))};
  deliver(options, {.json = [&](Output& out) { write_json(out, result); },
                    .page = [&](const Terminal& terminal) { return tokens_page(result, terminal.columns); },
                    .files = {{".csv", [&](Output& out) { write_csv(out, result); }}}});
  return kDone;
}

}  // namespace regard::cli
