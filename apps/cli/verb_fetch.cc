#include "destination.h"
#include "inputs.h"
#include "progress_line.h"
#include "report/json_documents.h"
#include "report/views.h"
#include "tensor/error.h"
#include "text/display.h"
#include "text/nearest_word.h"
#include "verbs.h"
#include "weights/catalogue.h"
#include "weights/default_model.h"
#include "weights/fetch.h"
#include "weights/hub_fetch.h"

namespace regard::cli {
namespace {

FetchResult fetch_named(const NamedModel& model, Progress& progress) {
  const Fetched fetched = fetch(model, &progress);
  return {.model = {model.name, model.description, model.licence, model.download_bytes(), model.installed_bytes(), true,
                    fetched.path.string()},
          .licence_file = fetched.licence.string(),
          .was_here = fetched.was_here};
}

FetchResult fetch_hub(const HubName& name, ProgressLine& progress, const Options& options) {
  const HubFetched fetched = fetch_from_hub(name, &progress, [&](const std::string& text) {
    progress.clear();
    remark(options, display(text));
  });
  return {.model = {name.text(), fetched.commit.empty() ? "" : "commit " + fetched.commit, fetched.licence,
                    fetched.downloaded, fetched.bytes, true, fetched.path.string()},
          .licence_file = fetched.licence_file.string(),
          .was_here = fetched.downloaded == 0};
}

FetchResult default_model() {
  const bool was_here = default_model_is_there();
  return {.model = listed_default_model(default_model_folder()),
          .licence_file = "",
          .was_here = was_here,
          .text = std::string(kDefaultModelText)};
}

[[noreturn]] void no_such_model(const std::string& word) {
  std::vector<std::string> names = {std::string(kDefaultModel)};
  for (const NamedModel& known : catalogue()) names.push_back(known.name);
  const std::string meant = nearest_word(word, names);
  throw Error(ErrorCode::not_found, fmt::format("no model is called \"{}\"", word),
              meant.empty() ? "`regard models` lists those there are; those of a hub are called org/name"
                            : fmt::format("did you mean {}?", meant));
}

}  // namespace

int run_fetch(const Words& words) {
  Options options;
  Arguments arguments(
      "fetch",
      "Gets a model: downloads it once, checks it, keeps it. MODEL is a name that `regard models` lists, "
      "or org/name[@REVISION][:FILE.gguf] of the Hugging Face hub.",
      "Interrupted? The same command goes on where it stopped. Named models go to REGARD_HOME, those of "
      "the hub to its own cache (HF_HOME, HF_HUB_CACHE), shared with other programs. HF_ENDPOINT names "
      "a mirror, HF_TOKEN a token, https_proxy a proxy.");
  options.declare_model(arguments);
  options.declare_output(arguments, {".json"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;

  ProgressLine progress(options.shows_progress());
  FetchResult result;
  if (options.model_name() == kDefaultModel)
    result = default_model();
  else if (const NamedModel* model = find_named_model(options.model_name()))
    result = fetch_named(*model, progress);
  else if (const auto name = parse_hub_name(options.model_name()))
    result = fetch_hub(*name, progress, options);
  else
    no_such_model(options.model_name());
  progress.clear();
  deliver(options, {.json = [&](Output& out) { write_json(out, result); },
                    .page = [&](const Terminal&) { return fetch_page(result); }});
  return kDone;
}

}  // namespace regard::cli
