// The lesson as one HTML file: the JSON document of the lesson, and a program that draws it.

#include "report/lesson_html.h"

#include "report/lesson_report.h"
#include "report/markup.h"

namespace regard {
namespace {

// The document as text inside a script element, which "<" could end.
std::string embedded(const LessonReport& report) {
  Output memory = Output::to_memory();
  write_json(memory, report);
  memory.finish();
  std::string text;
  for (const char c : memory.text()) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

}  // namespace

void write_lesson_html(Output& out, const LessonReport& report, Language language) {
  out.write("<!doctype html>\n<html lang=\"" + std::string(language == Language::chinese ? "zh-Hans" : "en") +
            "\">\n<head>\n<meta charset=\"utf-8\">\n<title>regard lesson</title>\n"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<style>\n");
  out.write(kLessonStyle);
  out.write(
      "</style>\n</head>\n<body>\n<noscript>This page draws itself: it needs JavaScript. 本页需要 "
      "JavaScript。</noscript>\n");
  out.write("<script type=\"application/json\" id=\"lesson\">\n" + embedded(report) +
            "</script>\n<script>\n\"use strict\";\n");
  for (const char* part : {kLessonCompute, kLessonDraw, kLessonInteract, kLessonBuild}) out.write(part);
  out.write("</script>\n</body>\n</html>\n");
}

}  // namespace regard
