#include "lesson_dialogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "destination.h"
#include "interrupt.h"
#include "lesson/answer.h"
#include "report/wrapped_text.h"

namespace regard::cli {
namespace {

constexpr int kAnswerIndent = 2;

}  // namespace

const char* LessonDialogue::say(const char* english, const char* chinese) const {
  return language_ == Language::chinese ? chinese : english;
}

void LessonDialogue::print(const std::string& text, int indent) {
  Page page;
  add_wrapped_text(page, text, std::min(options_.terminal().columns, 92) - indent, indent);
  print_page(page, options_.terminal());
}

std::optional<std::string> LessonDialogue::line(const std::string& prompt) {
  fmt::print("{}", prompt);
  std::fflush(stdout);
  std::string text;
  for (int c; (c = std::getchar()) != '\n';) {
    throw_if_interrupted();  // a signal ends the wait
    if (c == EOF) {
      ended_ = true;
      fmt::print("\n");
      std::fflush(stdout);
      return std::nullopt;
    }
    text += static_cast<char>(c);
  }
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

void LessonDialogue::show(const Step& step) {
  // Exercises are asked one by one instead.
  Step shown = step;
  std::erase_if(shown.blocks, [](const Block& block) { return std::holds_alternative<Exercise>(block); });
  const Terminal terminal = options_.terminal();
  print_page(lesson_page(shown, {.language = language_, .width = terminal.columns}), terminal);
  for (const Block& block : step.blocks)
    if (const auto* exercise = std::get_if<Exercise>(&block); exercise != nullptr && !ended_) ask(*exercise);
}

void LessonDialogue::ask(const Exercise& exercise) {
  print(exercise.question.in(language_));
  print(say("(h: a hint, s: show the way, Enter: leave it)", "（h：提示；s：看解法；回车：跳过）"));
  std::size_t hints = 0;
  const auto show_way = [&] {
    for (const LessonText& text : exercise.way) print(text.in(language_), kAnswerIndent);
  };
  for (const Exercise::Answer& answer : exercise.answers) {
    for (;;) {
      const std::optional<std::string> typed = line("  " + answer.label + " = ");
      if (!typed || typed->empty()) return show_way();
      if (*typed == "s") return show_way();
      if (*typed == "h") {
        if (!exercise.hints.empty())
          print(exercise.hints[std::min(hints++, exercise.hints.size() - 1)].in(language_), kAnswerIndent);
        continue;
      }
      const Verdict verdict = check_answer(*typed, answer.value);
      if (verdict == Verdict::right) {
        print(say("Right: ", "对：") + exactly(answer.value).both(), kAnswerIndent);
        break;
      }
      print(verdict == Verdict::wrong
                ? say("Not yet. Try again, or h for a hint.", "还不对。再试一次，或输入 h 看提示。")
                : say("Write a fraction (2/5), a decimal (0.4) or a percentage (40 %).",
                      "请写分数（2/5）、小数（0.4）或百分数（40 %）。"),
            kAnswerIndent);
    }
  }
  print(say("All right. The way:", "全对。解法："));
  show_way();
  fmt::print("\n");
}

void LessonDialogue::run(const std::vector<std::string>& steps,
                         const std::function<Step(const std::string& id)>& make) {
  for (std::size_t at = 0; at < steps.size() && !ended_;) {
    show(make(steps[at]));
    if (++at >= steps.size() || ended_) break;
    for (;;) {
      const std::optional<std::string> where = line(
          fmt::format("[{}/{}] {} ", at, steps.size(),
                      say("Enter: go on; a letter: that step; q: stop >", "回车：继续；字母：去那一步；q：结束 >")));
      if (!where || *where == "q") return;
      if (where->empty()) break;
      const auto found = std::find(steps.begin(), steps.end(), *where);
      if (found != steps.end()) {
        at = static_cast<std::size_t>(found - steps.begin());
        break;
      }
      print_page(lesson_contents_page({.language = language_}), options_.terminal());
    }
  }
}

}  // namespace regard::cli
