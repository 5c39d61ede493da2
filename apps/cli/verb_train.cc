#include <filesystem>

#include "destination.h"
#include "interrupt.h"
#include "progress_line.h"
#include "report/loss_curve.h"
#include "report/train_report.h"
#include "tensor/error.h"
#include "training/default_recipe.h"
#include "training/model_folder.h"
#include "verbs.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kAsked = 500;
constexpr std::int64_t kSaveEvery = 200;

// What was written is what is asked: the rounded weights of the folder.
std::vector<Answered> ask(const std::filesystem::path& folder, std::int64_t asked, ProgressLine& progress) {
  const Model model = Model::load(folder);
  std::vector<Answered> answered;
  for (const SentenceKind kind : kSentenceKinds)
    for (const Language language : {Language::english, Language::chinese}) {
      progress.at("asking held-out sentences", std::ssize(answered), 10);
      answered.push_back(
          {std::string(name(kind)), std::string(code(language)), asked, right_answers(model, kind, language, asked)});
    }
  return answered;
}

}  // namespace

int run_train(const Words& words) {
  Options options;
  DefaultRecipe recipe;
  std::optional<std::string> to;
  std::optional<std::int64_t> steps, sentences, every, asked;
  Arguments arguments(
      "train",
      "Makes a small model: from random weights, on a generated language of English and Chinese "
      "sentences that carry their planted causes (models/README.md).",
      "Writes a folder that other programs read too. A run that is stopped, by Ctrl-C or otherwise, goes on where it "
      "last saved when the same command is given again, and ends at the same bits. regard train out");
  arguments.positional("DIR", to, "the folder to write");
  arguments.integer("--steps", steps, 1, 1'000'000, fmt::format("of the whole run (default {})", recipe.how.steps));
  arguments.integer("--sentences", sentences, 1, 1'000'000,
                    fmt::format("that a step learns from (default {})", recipe.sentences));
  arguments.integer("--save-every", every, 1, 1'000'000, fmt::format("steps between saves (default {})", kSaveEvery));
  arguments.integer("--held-out", asked, 1, 1'000'000,
                    fmt::format("sentences asked at the end, of each kind in each language (default {})", kAsked));
  options.declare_output(arguments, {".json"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;
  if (!to) throw Error(ErrorCode::usage, "no folder to write", "regard train DIR");
  if (steps) recipe.how.steps = *steps;
  if (sentences) recipe.sentences = *sentences;

  const std::filesystem::path folder = *to, state = folder / "training.state";
  const TokenizerSpec spec = micro_language_tokenizer();
  const Tokenizer tokenizer(spec);
  const ModelConfig config = default_model_config(std::ssize(spec.pieces));
  Trainer trainer(config, spec, recipe.how, recipe.seed);
  std::filesystem::create_directories(folder);
  if (std::filesystem::exists(state)) trainer.resume(state, recipe.text());

  ProgressLine progress(options.shows_progress());
  const auto save = [&] { trainer.save(state, recipe.text()); };
  try {
    while (trainer.steps_done() < recipe.how.steps) {
      const std::string what =
          trainer.losses().empty() ? "training" : fmt::format("training, loss {:.3f}", trainer.losses().back());
      progress.at(what, trainer.steps_done(), recipe.how.steps);
      trainer.step(default_batch(recipe, tokenizer, trainer.steps_done()));
      if (trainer.steps_done() % every.value_or(kSaveEvery) == 0) save();
    }
  } catch (const Error& error) {
    if (error.code == ErrorCode::interrupted) save();
    throw;
  }
  save();  // should writing the folder fail
  write_model_folder(folder, config, spec, trainer.parameters());
  Output svg = Output::to_file(folder / "loss.svg");
  write_loss_svg(svg, trainer.losses());
  svg.finish();
  const TrainResult result{.path = folder.string(),
                           .losses = {trainer.losses().begin(), trainer.losses().end()},
                           .parameters = std::ssize(trainer.parameters().values()),
                           .answered = ask(folder, asked.value_or(kAsked), progress)};
  progress.clear();
  deliver(options, {.json = [&](Output& out) { write_json(out, result); },
                    .page = [&](const Terminal& terminal) { return train_page(result, terminal.columns); }});
  std::filesystem::remove(state);
  return kDone;
}

}  // namespace regard::cli
