#pragma once
// The lesson step by step: a step is shown, its exercises are asked, and the person says where to go on.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "options.h"
#include "report/lesson_report.h"

namespace regard::cli {

class LessonDialogue {
 public:
  LessonDialogue(const Options& options, Language language) : options_(options), language_(language) {}

  // Shows steps in order, each made when it is its turn; ends with them, or where the person or the input does.
  void run(const std::vector<std::string>& steps, const std::function<Step(const std::string& id)>& make);

 private:
  void show(const Step& step);
  void ask(const Exercise& exercise);
  const char* say(const char* english, const char* chinese) const;
  void print(const std::string& text, int indent = 0);
  std::optional<std::string> line(const std::string& prompt);  // nothing: the input has ended

  const Options& options_;
  Language language_;
  bool ended_ = false;
};

}  // namespace regard::cli
