#pragma once
// What the lesson says, in both of its languages.

#include <string>

#include "text/language.h"

namespace regard {

struct LessonText {
  std::string en, zh;

  const std::string& in(Language language) const { return language == Language::chinese ? zh : en; }
};

// What is written the same in both.
inline LessonText same(const std::string& text) { return {text, text}; }

}  // namespace regard
