#include "report/bench_report.h"

#include <fmt/core.h>

#include <cmath>

#include "report/csv_writer.h"
#include "report/json_documents.h"
#include "report/phrases.h"

namespace regard {
namespace {

constexpr int kName = 20, kShape = 38, kFigure = 18, kFraction = 10;

}  // namespace

void write_json(Output& out, std::span<const BenchLine> lines) {
  JsonWriter json(out);
  begin_document(json, "bench", nullptr, {});
  json.key("lines");
  json.begin_array();
  for (const BenchLine& line : lines) {
    json.begin_object();
    json.member("name", line.name);
    json.member("shape", line.shape);
    json.member("figure", line.figure);
    json.member("unit", line.unit);
    const double none = std::nan("");
    json.member("peak", line.peak > 0 ? line.peak : none);
    json.member("fraction", line.peak > 0 ? line.fraction : none);
    json.member("error", line.error);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.end_document();
}

void write_csv(Output& out, std::span<const BenchLine> lines) {
  CsvWriter csv(out);
  for (const char* name : {"name", "shape", "figure", "unit", "peak", "fraction", "error"}) csv.text(name);
  csv.end_row();
  for (const BenchLine& line : lines) {
    csv.text(line.name);
    csv.text(line.shape);
    csv.number(line.figure);
    csv.text(line.unit);
    csv.number(line.peak > 0 ? line.peak : std::nan(""));
    csv.number(line.peak > 0 ? line.fraction : std::nan(""));
    csv.number(line.error);
    csv.end_row();
  }
}

Line bench_heading() {
  return {piece(padded("case", kName) + padded("shape", kShape) + padded("figure", kFigure) +
                    padded("of peak", kFraction) + "largest error",
                {.faint = true})};
}

Line bench_line(const BenchLine& line) {
  Line text = {piece(padded(line.name + " ", kName)), piece(padded(line.shape + " ", kShape), {.faint = true}),
               piece(padded(fmt::format("{:.4g} {} ", line.figure, line.unit), kFigure))};
  text.push_back(piece(padded(line.peak > 0 ? percent(line.fraction) : "", kFraction)));
  if (std::isfinite(line.error)) text.push_back(piece(fmt::format("{:.2g}", line.error), {.faint = true}));
  return text;
}

}  // namespace regard
