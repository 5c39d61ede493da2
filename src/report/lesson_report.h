#pragma once
// The lesson in its three forms. They draw what a step holds and know nothing of what it is about.

#include <optional>
#include <vector>

#include "lesson/lesson.h"
#include "report/output.h"
#include "report/page.h"
#include "report/results.h"

namespace regard {

struct LessonReport {
  std::optional<ModelSummary> model = {};  // nothing: the lesson was made without one
  std::vector<TokenPiece> tokens = {};     // of the text that steps h and j are about
  Lesson lesson;
};

// {"regard", "verb", "model", "tokens", "steps": [{"id", "title", "blocks": [{"kind", ...}], "values": {name: {"shape",
// "number", "fraction", "exact"}}}]}: docs/lesson.md.
void write_json(Output& out, const LessonReport& report);

// One file that needs nothing else, in both languages; `language` is the one it opens in.
void write_lesson_html(Output& out, const LessonReport& report, Language language);

struct LessonPageOptions {
  Language language = Language::english;
  int width = 80;
};
Page lesson_page(const Step& step, const LessonPageOptions& options);
// The steps there are, for whoever wants to choose.
Page lesson_contents_page(const LessonPageOptions& options);

}  // namespace regard
