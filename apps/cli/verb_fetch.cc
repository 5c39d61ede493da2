#include "destination.h"
#include "progress_line.h"
#include "report/json_documents.h"
#include "report/views.h"
#include "tensor/error.h"
#include "verbs.h"
#include "weights/fetch.h"

namespace regard::cli {

int run_fetch(const Words& words) {
  Options options;
  Arguments arguments("fetch", "Gets a named model: downloads it once, checks it, keeps it in the cache folder.",
                      "Interrupted? The same command goes on where it stopped. REGARD_HOME changes the folder.");
  options.declare_model(arguments);
  options.declare_output(arguments, {".json"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;

  const NamedModel* model = find_named_model(options.model_name());
  if (!model) {
    std::vector<std::string> names;
    for (const NamedModel& known : catalogue()) names.push_back(known.name);
    const std::string meant = nearest(options.model_name(), names);
    throw Error(ErrorCode::not_found, fmt::format("no model is called \"{}\"", options.model_name()),
                meant.empty() ? "`regard models` lists those there are" : fmt::format("did you mean {}?", meant));
  }
  ProgressLine progress(options.shows_progress());
  const Fetched fetched = fetch(*model, &progress);
  progress.clear();

  FetchResult result{.model = {model->name, model->description, model->licence, model->download_bytes(),
                               model->installed_bytes(), true, fetched.path.string()},
                     .licence_file = fetched.licence.string(),
                     .was_here = fetched.was_here};
  deliver(options, {.json = [&](Output& out) { write_json(out, result); },
                    .page = [&](const Terminal&) { return fetch_page(result); }});
  return kDone;
}

}  // namespace regard::cli
