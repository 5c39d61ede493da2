// What a sweep found, as a document, a table and arrays.

#include "report/csv_writer.h"
#include "report/json_documents.h"
#include "report/npz_writer.h"
#include "report/sweep_result.h"

namespace regard {
namespace {

// The effects of one axis and those inside it.
void nested(JsonWriter& json, std::span<const double> values, std::span<const std::int64_t> shape) {
  if (shape.empty()) return json.number(values[0]);
  json.begin_array();
  const std::size_t step = values.size() / static_cast<std::size_t>(shape[0]);
  for (std::int64_t i = 0; i < shape[0]; ++i)
    nested(json, values.subspan(static_cast<std::size_t>(i) * step, step), shape.subspan(1));
  json.end_array();
}

}  // namespace

void write_json(Output& out, const SweepReport& report, std::optional<double> seconds) {
  JsonWriter json(out);
  begin_document(json, "sweep", &report.model, report.tokens);
  if (!report.source.empty()) write_tokens(json, "source", report.source);
  json.member("metric", report.by.text);
  write_row(json, report.row);
  json.member("base", report.base);
  json.key("each");
  json.begin_array();
  for (const Selector selector : report.each) json.string(name(selector));
  json.end_array();
  json.key("shape");
  json.integers(report.shape);
  json.key("effect");
  nested(json, report.effect, report.shape);
  json.member("what_ifs", report.what_ifs);
  json.member("seconds", seconds);
  json.key("receipts");
  json.begin_array();
  for (std::size_t e = 0; e < report.edits.size(); ++e) {
    json.begin_object();
    json.member("edit", report.edits[e]);
    json.member("matched", report.receipts[e].matched);
    json.member("changed", report.receipts[e].changed);
    json.member("out_of_reach", report.receipts[e].matched - report.receipts[e].passed);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.end_document();
}

void write_csv(Output& out, const SweepReport& report) {
  CsvWriter csv(out);
  for (const Selector selector : report.each) csv.text(name(selector));
  csv.text("effect");
  csv.end_row();
  std::vector<std::int64_t> at(report.shape.size());
  for (const double effect : report.effect) {
    for (const std::int64_t i : at) csv.integer(i);
    csv.number(effect);
    csv.end_row();
    for (std::size_t axis = at.size(); axis-- > 0 && ++at[axis] == report.shape[axis];) at[axis] = 0;
  }
}

void write_npz(Output& out, const SweepReport& report) {
  NpzWriter npz(out);
  std::vector<std::string> each, metric = {report.by.text};
  for (const Selector selector : report.each) each.emplace_back(name(selector));
  npz.add("effect", report.effect, report.shape);
  npz.add("base", std::span(&report.base, 1), {});
  npz.add_ids("ids", report.tokens);
  npz.add_texts("each", each);
  npz.add_texts("edits", report.edits);
  npz.add_texts("metric", metric);
  npz.finish();
}

}  // namespace regard
