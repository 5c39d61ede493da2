#pragma once
// The parts that the lesson's page is put together from: rules of style, and programs that run in the browser.

namespace regard {

extern const char* const kLessonStyle;
extern const char* const kLessonCompute;   // the small head, and answers: what the engine computes, again
extern const char* const kLessonDraw;      // numbers, matrices, charts
extern const char* const kLessonInteract;  // sliders and exercises
extern const char* const kLessonBuild;     // the page from the document

}  // namespace regard
