#pragma once
// The lesson: attention from three tokens and fractions up to a real model, in twelve steps. A step is words, tables,
// pictures, things to move and exercises, in both languages, with every number computed. Faces (report/lesson_*.cc)
// draw them without knowing what they are about.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lesson/answer.h"
#include "lesson/exploration.h"
#include "lesson/number.h"
#include "lesson/text.h"
#include "model/model.h"
#include "parallel/progress.h"

namespace regard {

struct Table {
  using Cell = std::variant<LessonText, Number>;
  LessonText caption;
  std::vector<LessonText> columns;
  std::vector<std::vector<Cell>> rows;
};

// Matrices side by side, shaded by size.
struct MatrixRow {
  struct Matrix {
    LessonText name;
    Numbers numbers;                   // [rows, columns]
    std::vector<std::string> rows;     // labels, or none
    std::vector<std::string> columns;  // labels, or none
  };
  LessonText caption;
  std::vector<Matrix> matrices;
};

// Who reads whom: a line from each reader to each key, as thick as its weight.
struct ReadsPicture {
  LessonText caption;
  std::vector<std::string> readers, keys;
  Numbers weights;  // [readers, keys]
};

struct BarChart {
  LessonText caption;
  std::vector<std::string> labels;
  std::vector<std::pair<LessonText, Numbers>> series;  // [labels] each
};

struct LineChart {
  struct Series {
    LessonText name;
    std::vector<double> x, y;  // NaN: nothing there
  };
  LessonText caption, x, y;
  bool log_x = false, log_y = false;
  std::vector<Series> series;
};

// Boxes in a row, each with what comes out of it.
struct FlowChart {
  LessonText caption;
  std::vector<std::pair<LessonText, std::string>> boxes;
};

// A question whose answers are checked.
struct Exercise {
  struct Answer {
    std::string label;  // "w1"
    Rational value;
  };
  std::string id;
  LessonText question;
  std::vector<Answer> answers;
  std::vector<LessonText> hints;
  std::vector<LessonText> way;  // the whole solution, line by line
  // What somebody may type as answers, and what check_answer says: the page, which checks by itself, is compared.
  struct Check {
    std::size_t answer = 0;
    std::string typed;
    Verdict verdict = Verdict::unreadable;
  };
  std::vector<Check> checks = {};
};

using Block =
    std::variant<LessonText, Table, MatrixRow, ReadsPicture, BarChart, LineChart, FlowChart, Exploration, Exercise>;

struct Step {
  std::string id;  // "a"
  LessonText title;
  std::vector<Block> blocks;
  std::vector<std::pair<std::string, Numbers>> values;  // all that the step is about, by name

  const Numbers* value(std::string_view name) const;  // nullptr: no such
};

struct Lesson {
  std::vector<Step> steps;
};

// What the steps about a real model need of it.
struct LessonModel {
  std::string name;
  const Model* model = nullptr;
  std::vector<std::int32_t> ids;
};

struct LessonRequest {
  std::vector<std::string> steps = {};         // ids; empty: all
  std::optional<LessonModel> model = {};       // nothing: the steps say what is missing
  double seconds = 20;                         // that measuring the cost may take
  std::int64_t bytes = std::int64_t{1} << 30;  // that the S x S way may take
  Progress* progress = nullptr;
};

// Ids and titles, in order.
std::vector<std::pair<std::string, LessonText>> lesson_contents();

// Error{usage} for a step that is not there.
Lesson make_lesson(const LessonRequest& request);

}  // namespace regard
