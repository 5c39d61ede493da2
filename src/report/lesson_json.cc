// The lesson as one JSON document; the page holds the same.

#include "report/json_documents.h"
#include "report/lesson_report.h"

namespace regard {
namespace {

void write_text(JsonWriter& json, const LessonText& text) {
  json.begin_object();
  json.member("en", text.en);
  json.member("zh", text.zh);
  json.end_object();
}

void write_text(JsonWriter& json, std::string_view name, const LessonText& text) {
  json.key(name);
  write_text(json, text);
}

void write_strings(JsonWriter& json, std::string_view name, const std::vector<std::string>& strings) {
  json.key(name);
  json.begin_array();
  for (const std::string& string : strings) json.string(string);
  json.end_array();
}

// Nested like the shape; `write` writes item i.
template <typename Write>
void write_nested(JsonWriter& json, const std::vector<std::int64_t>& shape, std::size_t axis, std::int64_t& at,
                  const Write& write) {
  if (axis == shape.size()) return write(at++);
  json.begin_array();
  for (std::int64_t i = 0; i < shape[axis]; ++i) write_nested(json, shape, axis + 1, at, write);
  json.end_array();
}

void write_numbers(JsonWriter& json, const Numbers& numbers) {
  const auto item = [&](std::int64_t i) -> const Number& { return numbers.items[static_cast<std::size_t>(i)]; };
  const auto nested = [&](std::string_view name, const auto& write) {
    json.key(name);
    std::int64_t at = 0;
    write_nested(json, numbers.shape, 0, at, write);
  };
  json.begin_object();
  json.key("shape");
  json.integers(numbers.shape);
  nested("number", [&](std::int64_t i) { json.number(item(i).value); });
  nested("fraction", [&](std::int64_t i) {
    const std::optional<std::string> fraction = item(i).fraction();
    fraction ? json.string(*fraction) : json.null();
  });
  nested("exact", [&](std::int64_t i) { item(i).exact ? json.string(item(i).exact->text()) : json.null(); });
  json.end_object();
}

void write_doubles(JsonWriter& json, std::string_view name, const std::vector<double>& values) {
  json.key(name);
  json.begin_array();
  for (const double value : values) json.number(value);
  json.end_array();
}

void write_matrix(JsonWriter& json, std::string_view name, const SmallMatrix& matrix) {
  json.key(name);
  std::int64_t at = 0;
  write_nested(json, {matrix.rows, matrix.columns}, 0, at,
               [&](std::int64_t i) { json.number(matrix.items[static_cast<std::size_t>(i)]); });
}

class BlockWriter {
 public:
  explicit BlockWriter(JsonWriter& json) : json_(json) {}

  void operator()(const LessonText& text) {
    json_.member("kind", "paragraph");
    write_text(json_, "text", text);
  }

  void operator()(const Table& table) {
    json_.member("kind", "table");
    write_text(json_, "caption", table.caption);
    array("columns", table.columns, [&](const LessonText& column) { write_text(json_, column); });
    array("rows", table.rows, [&](const std::vector<Table::Cell>& row) {
      json_.begin_array();
      for (const Table::Cell& cell : row) {
        if (const auto* text = std::get_if<LessonText>(&cell)) {
          write_text(json_, *text);
        } else {
          write_numbers(json_, {.shape = {}, .items = {std::get<Number>(cell)}});
        }
      }
      json_.end_array();
    });
  }

  void operator()(const MatrixRow& row) {
    json_.member("kind", "matrices");
    write_text(json_, "caption", row.caption);
    array("matrices", row.matrices, [&](const MatrixRow::Matrix& matrix) {
      json_.begin_object();
      write_text(json_, "name", matrix.name);
      write_strings(json_, "rows", matrix.rows);
      write_strings(json_, "columns", matrix.columns);
      json_.key("numbers");
      write_numbers(json_, matrix.numbers);
      json_.end_object();
    });
  }

  void operator()(const ReadsPicture& picture) {
    json_.member("kind", "reads");
    write_text(json_, "caption", picture.caption);
    write_strings(json_, "readers", picture.readers);
    write_strings(json_, "keys", picture.keys);
    json_.key("weights");
    write_numbers(json_, picture.weights);
  }

  void operator()(const BarChart& chart) {
    json_.member("kind", "bars");
    write_text(json_, "caption", chart.caption);
    write_strings(json_, "labels", chart.labels);
    array("series", chart.series, [&](const auto& series) {
      json_.begin_object();
      write_text(json_, "name", series.first);
      json_.key("numbers");
      write_numbers(json_, series.second);
      json_.end_object();
    });
  }

  void operator()(const LineChart& chart) {
    json_.member("kind", "lines");
    write_text(json_, "caption", chart.caption);
    write_text(json_, "x", chart.x);
    write_text(json_, "y", chart.y);
    json_.member("log_x", chart.log_x);
    json_.member("log_y", chart.log_y);
    array("series", chart.series, [&](const LineChart::Series& series) {
      json_.begin_object();
      write_text(json_, "name", series.name);
      write_doubles(json_, "x", series.x);
      write_doubles(json_, "y", series.y);
      json_.end_object();
    });
  }

  void operator()(const FlowChart& chart) {
    json_.member("kind", "flow");
    write_text(json_, "caption", chart.caption);
    array("boxes", chart.boxes, [&](const auto& box) {
      json_.begin_object();
      write_text(json_, "label", box.first);
      json_.member("detail", box.second);
      json_.end_object();
    });
  }

  void operator()(const Exploration& explore) {
    json_.member("kind", "exploration");
    json_.member("id", explore.id);
    write_text(json_, "caption", explore.caption);
    write_strings(json_, "readers", explore.readers);
    write_strings(json_, "keys", explore.keys);
    json_.key("head");
    write_head(explore.head);
    array("sliders", explore.sliders, [&](const Slider& slider) { write_slider(slider); });
    array("checks", explore.checks, [&](const Exploration::Check& check) {
      json_.begin_object();
      write_doubles(json_, "settings", check.settings);
      write_matrix(json_, "scores", check.result.scores);
      write_matrix(json_, "weights", check.result.weights);
      write_matrix(json_, "outputs", check.result.outputs);
      json_.member("loss", check.result.loss);
      json_.end_object();
    });
  }

  void operator()(const Exercise& exercise) {
    json_.member("kind", "exercise");
    json_.member("id", exercise.id);
    write_text(json_, "question", exercise.question);
    array("answers", exercise.answers, [&](const Exercise::Answer& answer) {
      json_.begin_object();
      json_.member("label", answer.label);
      json_.member("number", answer.value.number());
      json_.member("fraction", answer.value.text());
      json_.end_object();
    });
    array("hints", exercise.hints, [&](const LessonText& hint) { write_text(json_, hint); });
    array("checks", exercise.checks, [&](const Exercise::Check& check) {
      json_.begin_object();
      json_.member("answer", static_cast<std::int64_t>(check.answer));
      json_.member("typed", check.typed);
      json_.member("verdict", name(check.verdict));
      json_.end_object();
    });
    array("way", exercise.way, [&](const LessonText& line) { write_text(json_, line); });
  }

 private:
  template <typename Items, typename Write>
  void array(std::string_view name, const Items& items, const Write& write) {
    json_.key(name);
    json_.begin_array();
    for (const auto& item : items) write(item);
    json_.end_array();
  }

  void write_head(const SmallHead& head) {
    json_.begin_object();
    for (const auto& [name, matrix] : {std::pair{"xq", &head.xq},
                                       {"xk", &head.xk},
                                       {"xv", &head.xv},
                                       {"wq", &head.wq},
                                       {"wk", &head.wk},
                                       {"wv", &head.wv}})
      write_matrix(json_, name, *matrix);
    write_doubles(json_, "query_positions", head.query_positions);
    write_doubles(json_, "key_positions", head.key_positions);
    json_.member("scale", head.scale);
    json_.member("temperature", head.temperature);
    json_.member("key_scale", head.key_scale);
    json_.member("causal", head.causal);
    json_.member("rotary", head.rotary);
    write_matrix(json_, "target", head.target);
    json_.member("rate", head.rate);
    json_.end_object();
  }

  void write_slider(const Slider& slider) {
    json_.begin_object();
    write_text(json_, "label", slider.label);
    for (const auto& [name, value] :
         {std::pair{"low", slider.low}, {"high", slider.high}, {"step", slider.step}, {"initial", slider.initial}})
      json_.member(name, value);
    array("targets", slider.targets, [&](const Slider::Target& target) {
      json_.begin_object();
      json_.member("what", target.what);
      json_.member("row", target.row);
      json_.member("column", target.column);
      json_.member("factor", target.factor);
      json_.end_object();
    });
    json_.end_object();
  }

  JsonWriter& json_;
};

}  // namespace

void write_json(Output& out, const LessonReport& report) {
  JsonWriter json(out);
  begin_document(json, "lesson", report.model ? &*report.model : nullptr, report.tokens);
  json.key("steps");
  json.begin_array();
  for (const Step& step : report.lesson.steps) {
    json.begin_object();
    json.member("id", step.id);
    write_text(json, "title", step.title);
    json.key("blocks");
    json.begin_array();
    for (const Block& block : step.blocks) {
      json.begin_object();
      std::visit(BlockWriter(json), block);
      json.end_object();
    }
    json.end_array();
    json.key("values");
    json.begin_object();
    for (const auto& [name, numbers] : step.values) {
      json.key(name);
      write_numbers(json, numbers);
    }
    json.end_object();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.end_document();
}

}  // namespace regard
