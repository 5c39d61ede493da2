#include "destination.h"
#include "inputs.h"
#include "report/json_documents.h"
#include "report/views.h"
#include "verbs.h"
#include "weights/catalogue.h"
#include "weights/default_model.h"
#include "weights/hub_cache.h"

namespace regard::cli {

int run_models(const Words& words) {
  Options options;
  Arguments arguments("models",
                      "What models can be had by name, and which are here; also those that were fetched from a hub.");
  options.declare_output(arguments, {".json"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;

  std::vector<ListedModel> models = {listed_default_model(default_model_place())};
  for (const NamedModel& model : catalogue())
    models.push_back({model.name, model.description, model.licence, model.download_bytes(), model.installed_bytes(),
                      is_here(model), (model_folder(model) / model.main_file).string()});
  for (const CachedModel& model : models_in_hub_cache())
    models.push_back(
        {model.name.text(), "of the hub, in its own cache", "", model.bytes, model.bytes, true, model.path.string()});
  deliver(options, {.json = [&](Output& out) { write_json(out, std::span<const ListedModel>(models)); },
                    .page = [&](const Terminal& terminal) { return models_page(models, terminal.columns); }});
  return kDone;
}

}  // namespace regard::cli
