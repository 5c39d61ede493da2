#include <filesystem>

#include "destination.h"
#include "inputs.h"
#include "interrupt.h"
#include "progress_line.h"
#include "report/loss_curve.h"
#include "report/train_report.h"
#include "tensor/error.h"
#include "training/default_recipe.h"
#include "training/model_folder.h"
#include "training/text_recipe.h"
#include "verbs.h"
#include "weights/file_lock.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kAsked = 500;
constexpr std::int64_t kSaveEvery = 200;
constexpr std::size_t kMostTextBytes = std::size_t{1} << 30;  // of a text

struct TrainChoice {
  Options options;
  std::optional<std::string> to, file;
  std::optional<std::int64_t> steps, batch, hidden, every, asked;
  std::optional<double> dropout;
};

bool parse(TrainChoice& choice, const Words& words) {
  const DefaultRecipe sentences;
  const TextRecipe text;
  Arguments arguments(
      "train",
      "Makes the small default model again: from random weights, on a generated language of English and Chinese "
      "sentences that carry their planted causes (models/README.md). With -f, a model of the same shape that reads the "
      "bytes of a text.",
      "Writes a folder that other programs read too. A run that is stopped, by Ctrl-C or otherwise, goes on where it "
      "last saved when the same command is given again, and ends at the same bits.\n"
      "regard train out\n"
      "regard train out -f novel.txt");
  arguments.positional("DIR", choice.to, "the folder to write");
  arguments.text("-f,--file", choice.file, "FILE|-",
                 "learn to go on with this text, whatever its encoding; its last tenth is held out");
  arguments.integer("--steps", choice.steps, 1, 1'000'000,
                    fmt::format("of the whole run (default {}; {} with -f)", sentences.how.steps, text.how.steps));
  arguments.integer("--batch", choice.batch, 1, 1'000'000,
                    fmt::format("sentences that a step learns from (default {}), or pieces of a text (default {})",
                                sentences.sentences, text.pieces));
  arguments.integer("--hidden", choice.hidden, 0, 1'000'000,
                    fmt::format("one sentence of so many has a word that no other reads (default {}; 0: none has)",
                                sentences.hidden_in));
  arguments.number("--dropout", choice.dropout, 0, 1,
                   "the share of attention's weights that a step leaves out (default 0)");
  arguments.integer("--save-every", choice.every, 1, 1'000'000,
                    fmt::format("steps between saves (default {})", kSaveEvery));
  arguments.integer("--held-out", choice.asked, 1, 1'000'000,
                    fmt::format("sentences asked at the end, of each kind in each language (default {})", kAsked));
  choice.options.declare_output(arguments, {".json"});
  choice.options.declare_machine(arguments);
  if (!choice.options.parse(arguments, words)) return false;
  if (!choice.to) throw Error(ErrorCode::usage, "no folder to write", "regard train DIR");
  if (choice.file && (choice.asked || choice.hidden))
    throw Error(ErrorCode::usage,
                fmt::format("{} is of sentences, and -f names a text", choice.asked ? "--held-out" : "--hidden"),
                "leave one of them out");
  if (choice.dropout && *choice.dropout == 1)
    throw Error(ErrorCode::usage, "nothing is left to learn by, --dropout 1", "leave out less");
  return true;
}

// What a run learns from, and how it is examined.
struct Course {
  TokenizerSpec tokenizer;
  ModelConfig config;
  AdamW how;
  std::uint64_t seed = 0;
  float dropout = 0;
  std::string recipe;
  BatchOf batch;
  std::function<void(const Model&, TrainResult&, ProgressLine&)> examine;
};

Course language_course(const TrainChoice& choice) {
  DefaultRecipe recipe;
  recipe.how.steps = choice.steps.value_or(recipe.how.steps);
  recipe.sentences = choice.batch.value_or(recipe.sentences);
  recipe.hidden_in = choice.hidden.value_or(recipe.hidden_in);
  recipe.dropout = static_cast<float>(choice.dropout.value_or(recipe.dropout));
  const TokenizerSpec spec = micro_language_tokenizer();
  return {.tokenizer = spec,
          .config = default_model_config(std::ssize(spec.pieces)),
          .how = recipe.how,
          .seed = recipe.seed,
          .dropout = recipe.dropout,
          .recipe = recipe.text(),
          .batch = [recipe, tokenizer = std::make_shared<Tokenizer>(spec)](
                       std::int64_t step) { return default_batch(recipe, *tokenizer, step); },
          .examine =
              [asked = choice.asked.value_or(kAsked)](const Model& model, TrainResult& result, ProgressLine& progress) {
                for (const SentenceKind kind : kSentenceKinds)
                  for (const Language language : {Language::english, Language::chinese}) {
                    progress.at("asking held-out sentences", std::ssize(result.answered), 10);
                    result.answered.push_back({std::string(name(kind)), std::string(code(language)), asked,
                                               right_answers(model, kind, language, asked)});
                  }
              }};
}

Course text_course(const TrainChoice& choice) {
  TextRecipe recipe;
  recipe.how.steps = choice.steps.value_or(recipe.how.steps);
  recipe.pieces = choice.batch.value_or(recipe.pieces);
  recipe.dropout = static_cast<float>(choice.dropout.value_or(recipe.dropout));
  const auto whole = std::make_shared<const std::string>(read_bytes(*choice.file, kMostTextBytes));
  const SplitText text(*whole);
  return {.tokenizer = byte_tokenizer(),
          .config = text_model_config(),
          .how = recipe.how,
          .seed = recipe.seed,
          .dropout = recipe.dropout,
          .recipe = recipe.text(text.learnt),
          .batch = [recipe, whole, text](std::int64_t step) { return text_batch(recipe, text.learnt, step); },
          .examine =
              [whole, text](const Model& model, TrainResult& result, ProgressLine& progress) {
                const auto part = [&](std::string_view of) {
                  const TextLoss said = text_loss(model, of);
                  return TextPart{.bytes = std::ssize(of), .measured = said.bytes, .loss = said.loss};
                };
                progress.at("measuring the loss", 0, 2);
                result.learnt = part(text.learnt);
                progress.at("measuring the loss", 1, 2);
                result.held_out = part(text.held_out);
              }};
}

// A folder to write to, which holds no other model.
void prepare(const std::filesystem::path& folder, const std::filesystem::path& state, const std::string& recipe) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder))
    throw Error(ErrorCode::io,
                fmt::format("{} cannot be made: {}", folder.string(), error ? error.message() : "no folder"),
                "name another folder");
  if (std::filesystem::exists(state) || !std::filesystem::exists(folder / "model.safetensors")) return;
  throw Error(ErrorCode::bad_input,
              recipe_of(folder) == recipe ? fmt::format("{} holds the finished model of this recipe", folder.string())
                                          : fmt::format("{} holds another model", folder.string()),
              "name another folder");
}

}  // namespace

int run_train(const Words& words) {
  TrainChoice choice;
  if (!parse(choice, words)) return kDone;
  const Course course = choice.file ? text_course(choice) : language_course(choice);
  const std::filesystem::path folder = *choice.to, state = folder / "training.state";
  Trainer trainer(course.config, course.tokenizer, course.how, course.seed, course.dropout);
  check_outputs(choice.options);
  prepare(folder, state, course.recipe);
  const std::filesystem::path lock_path = folder / "training.lock";
  const FileLock lock(lock_path, "", [&] {
    throw Error(ErrorCode::io, fmt::format("another run is writing {}", folder.string()), "name another folder");
  });
  if (std::filesystem::exists(state)) trainer.resume(state, course.recipe);

  ProgressLine progress(choice.options.shows_progress());
  const auto save = [&] { trainer.save(state, course.recipe); };
  try {
    while (trainer.steps_done() < course.how.steps) {
      const std::string what =
          trainer.losses().empty() ? "training" : fmt::format("training, loss {:.3f}", trainer.losses().back());
      progress.at(what, trainer.steps_done(), course.how.steps);
      trainer.step(course.batch(trainer.steps_done()));
      if (trainer.steps_done() % choice.every.value_or(kSaveEvery) == 0) save();
    }
  } catch (const Error& error) {
    if (error.code == ErrorCode::interrupted) save();
    throw;
  }
  save();  // should writing the folder fail
  write_model_folder(folder, course.config, course.tokenizer, trainer.parameters(), course.recipe);
  Output svg = Output::to_file(folder / "loss.svg");
  write_loss_svg(svg, trainer.losses());
  svg.finish();
  TrainResult result{.path = folder.string(),
                     .losses = {trainer.losses().begin(), trainer.losses().end()},
                     .parameters = std::ssize(trainer.parameters().values()),
                     .answered = {},
                     .learnt = {},
                     .held_out = {}};
  course.examine(Model::load(folder), result, progress);  // what was written: the rounded weights
  progress.clear();
  deliver(choice.options, {.json = [&](Output& out) { write_json(out, result); },
                           .page = [&](const Terminal& terminal) { return train_page(result, terminal.columns); }});
  std::filesystem::remove(state);
  std::filesystem::remove(lock_path);
  return kDone;
}

}  // namespace regard::cli
