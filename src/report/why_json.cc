// What an answer depends on, as a document and as a table.

#include <cmath>

#include "report/csv_writer.h"
#include "report/json_documents.h"
#include "report/why_result.h"

namespace regard {
namespace {

struct Column {
  const char* name;
  const std::vector<double> WhyResult::*values;
};
constexpr Column kColumns[] = {{"attention", &WhyResult::attention},
                               {"rollout", &WhyResult::rollout},
                               {"norm_weighted", &WhyResult::norm_weighted},
                               {"hide_from_last", &WhyResult::hide_from_last},
                               {"hide_from_all", &WhyResult::hide_from_all},
                               {"keys_only", &WhyResult::keys_only},
                               {"values_only", &WhyResult::values_only},
                               {"both", &WhyResult::both},
                               {"screened", &WhyResult::screened}};

// NaN, which is written as null, where there is no such number.
double at(const WhyReport& report, const Column& column, std::size_t position) {
  const std::vector<double>& values = report.why.*column.values;
  return position < values.size() ? values[position] : std::nan("");
}

}  // namespace

void write_json(Output& out, const WhyReport& report) {
  const WhyResult& why = report.why;
  JsonWriter json(out);
  begin_document(json, "why", &report.model, report.tokens);
  json.member("metric", report.by.text);
  write_row(json, why.row);
  json.member("base", why.base);
  json.member("contrast", why.contrast);
  write_candidates(json, report.next);
  json.key("attention_sink");
  if (report.sink) {
    json.begin_object();
    json.member("position", report.sink->position);
    json.member("share", report.sink->share);
    json.member("mass", report.sink->mass);
    json.end_object();
  } else {
    json.null();
  }
  json.key("by_key");
  json.begin_array();
  for (std::size_t s = 0; s < report.tokens.size(); ++s) {
    json.begin_object();
    json.member("position", static_cast<std::int64_t>(s));
    json.member("text", report.tokens[s].bytes);
    for (const Column& column : kColumns) json.member(column.name, at(report, column, s));
    json.end_object();
  }
  json.end_array();
  json.key("by_head");
  json.begin_object();
  json.key("zero_z");
  if (why.zero_z.size() > 0) {
    json.begin_array();
    for (std::int64_t layer = 0; layer < why.zero_z.shape()[0]; ++layer) {
      json.begin_array();
      for (std::int64_t head = 0; head < why.zero_z.shape()[1]; ++head) json.number(why.zero_z(layer, head));
      json.end_array();
    }
    json.end_array();
  } else {
    json.null();
  }
  json.end_object();
  json.member("what_ifs", why.what_ifs);
  json.member("seconds", report.seconds);
  json.key("receipts");
  write_receipts(json, why.receipts);
  json.end_object();
  json.end_document();
}

void write_csv(Output& out, const WhyReport& report) {
  CsvWriter csv(out);
  csv.text("position");
  csv.text("text");
  for (const Column& column : kColumns) csv.text(column.name);
  csv.end_row();
  for (std::size_t s = 0; s < report.tokens.size(); ++s) {
    csv.integer(static_cast<std::int64_t>(s));
    csv.text(report.tokens[s].bytes);
    for (const Column& column : kColumns) csv.number(at(report, column, s));
    csv.end_row();
  }
}

}  // namespace regard
