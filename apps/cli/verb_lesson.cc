// regard lesson: whole, step by step, as a page for the browser, or as numbers.

#include <unistd.h>

#include <algorithm>

#include "destination.h"
#include "inputs.h"
#include "lesson_dialogue.h"
#include "memory.h"
#include "progress_line.h"
#include "report/lesson_report.h"
#include "tensor/error.h"
#include "verbs.h"
#include "weights/catalogue.h"
#include "weights/default_model.h"

namespace regard::cli {
namespace {

// What is read if nobody says, by models that know English.
constexpr const char* kText = "When Mary and John went to the store, John gave a drink to";
constexpr std::int64_t kMostWeightBytes = std::int64_t{1} << 30;  // that S x S weights may take
constexpr double kSeconds = 20;                                   // that measuring may take

struct LessonChoice {
  Options options;
  std::vector<std::string> steps;
  std::optional<std::string> language;
  bool ask = false, whole = false;
};

bool parse(LessonChoice& choice, const Words& words) {
  Arguments arguments("lesson",
                      "Attention from three tokens and fractions up to a whole model; every number is computed.",
                      "In a terminal it goes step by step and checks the answers of its exercises.\n"
                      "regard lesson\n"
                      "regard lesson --step b --step c\n"
                      "regard lesson smollm2 --step j\n"
                      "regard lesson -o lesson.html");
  Options& options = choice.options;
  arguments.positional("MODEL", options.model, "what steps h and j look into (default: default)");
  options.declare_optional_text(arguments);
  arguments.texts("--step", choice.steps, "a..l", "this step only (may be repeated)");
  arguments.text("--language", choice.language, "en|zh", "English or Chinese (default: en; the page holds both)");
  arguments.flag("--ask", choice.ask, "step by step with questions, also where standard input is no terminal");
  arguments.flag("--whole", choice.whole, "all at once, also in a terminal");
  options.declare_output(arguments, {".json", ".html"});
  options.declare_machine(arguments);
  return options.parse(arguments, words);
}

Language language_of(const LessonChoice& choice) {
  if (!choice.language || *choice.language == "en") return Language::english;
  if (*choice.language == "zh") return Language::chinese;
  throw Error(ErrorCode::usage, fmt::format("the lesson does not speak \"{}\", --language", *choice.language),
              "write en or zh");
}

bool needs_model(const LessonChoice& choice) {
  const std::vector<std::string>& steps = choice.steps;
  return steps.empty() || std::find(steps.begin(), steps.end(), "h") != steps.end() ||
         std::find(steps.begin(), steps.end(), "j") != steps.end();
}

}  // namespace

int run_lesson(const Words& words) {
  LessonChoice choice;
  if (!parse(choice, words)) return kDone;
  const Options& options = choice.options;
  if (choice.ask && choice.whole)
    throw Error(ErrorCode::usage, "step by step or all at once, --ask and --whole", "give one of them");
  const Language language = language_of(choice);
  const std::vector<std::pair<std::string, LessonText>> contents = lesson_contents();
  for (const std::string& id : choice.steps)
    if (std::none_of(contents.begin(), contents.end(), [&](const auto& step) { return step.first == id; }))
      throw Error(ErrorCode::usage, fmt::format("the lesson has no step \"{}\", --step", id),
                  fmt::format("its steps are {} to {}", contents.front().first, contents.back().first));

  const bool given = options.prompt || options.file || options.ids;
  std::optional<Model> model;
  LessonReport report;
  ProgressLine progress(options.shows_progress());
  LessonRequest request{
      .seconds = kSeconds, .bytes = std::min(kMostWeightBytes, free_memory() / 2), .progress = &progress};
  if (options.model || given || needs_model(choice)) {
    const std::string name = options.model.value_or(std::string(kDefaultModel));
    const auto path = locate(name);
    model.emplace(load_model(path));
    require_one_text(*model, "the lesson is about a model of one text");
    Options text = options;
    if (!given) text.prompt = name == kDefaultModel ? std::string(kDefaultModelText) : kText;
    const std::vector<std::int32_t> ids = prompt_ids(text, model->tokenizer());
    check_length(ids, model->config());
    report.model = summary(name, model->config(), path);
    report.tokens = token_pieces(model->tokenizer(), ids);
    request.model = LessonModel{.name = name, .model = &*model, .ids = ids};
  }
  const auto make = [&](const std::vector<std::string>& steps) {
    request.steps = steps;
    Lesson lesson = make_lesson(request);
    if (model) model->checkpoint().check_intact();
    progress.clear();
    return lesson;
  };

  const bool prints = !options.json && options.outputs.empty();
  if (prints && !choice.whole && (choice.ask || (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))) {
    LessonDialogue dialogue(options, language);
    std::vector<std::string> steps = choice.steps;
    if (steps.empty())
      for (const auto& [id, title] : contents) steps.push_back(id);
    dialogue.run(steps, [&](const std::string& id) { return make({id}).steps.front(); });
    return kDone;
  }
  report.lesson = make(choice.steps);
  deliver(options,
          {.json = [&](Output& out) { write_json(out, report); },
           .page =
               [&](const Terminal& terminal) {
                 Page page;
                 for (const Step& step : report.lesson.steps)
                   for (Line& line : lesson_page(step, {.language = language, .width = terminal.columns}).lines)
                     page.lines.push_back(std::move(line));
                 return page;
               },
           .files = {{".html", [&](Output& out) { write_lesson_html(out, report, language); }}}});
  return kDone;
}

}  // namespace regard::cli
