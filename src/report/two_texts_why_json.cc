// What the answer of an encoder-decoder depends on, as a document and as a table.

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "report/csv_writer.h"
#include "report/json_documents.h"
#include "report/two_texts_why.h"

namespace regard {
namespace {

struct TokenColumn {
  const char* name;
  const std::vector<double>* values;  // null: there is no such reading across two texts
};

void write_positions(JsonWriter& json, std::string_view key, const std::vector<TokenPiece>& tokens,
                     const std::vector<TokenColumn>& columns) {
  json.key(key);
  json.begin_array();
  for (std::size_t s = 0; s < tokens.size(); ++s) {
    json.begin_object();
    json.member("position", static_cast<std::int64_t>(s));
    json.member("text", tokens[s].bytes);
    for (const TokenColumn& column : columns) {
      if (column.values != nullptr) {
        json.member(column.name, (*column.values)[s]);
      } else {
        json.key(column.name);
        json.null();
      }
    }
    json.end_object();
  }
  json.end_array();
}

void write_heads(JsonWriter& json, const Tensor<double, 2>& effects) {
  if (effects.size() == 0) return json.null();
  json.begin_array();
  for (std::int64_t layer = 0; layer < effects.shape()[0]; ++layer) {
    json.begin_array();
    for (std::int64_t head = 0; head < effects.shape()[1]; ++head) json.number(effects(layer, head));
    json.end_array();
  }
  json.end_array();
}

std::vector<TokenColumn> source_columns(const TwoTextWhy::Source& source) {
  return {{"attention", &source.attention},
          {"hide_from_last", &source.hide_from_last},
          {"hide_from_all", &source.hide_from_all},
          {"hide_in_encoder", &source.hide_in_encoder}};
}

}  // namespace

void write_json(Output& out, const TwoTextWhyReport& report) {
  const TwoTextWhy& why = report.why;
  JsonWriter json(out);
  begin_document(json, "why", &report.model, report.tokens);
  write_tokens(json, "source", report.source);
  json.member("metric", report.by.text);
  write_row(json, why.row);
  json.member("base", why.base);
  write_candidates(json, report.next);
  write_positions(json, "by_source", report.source, source_columns(why.source));
  // The names that why of one text has.
  write_positions(json, "by_key", report.tokens,
                  {{"attention", &why.target.attention},
                   {"rollout", nullptr},
                   {"norm_weighted", nullptr},
                   {"hide_from_last", &why.target.hide_from_last},
                   {"hide_from_all", &why.target.hide_from_all},
                   {"keys_only", nullptr},
                   {"values_only", nullptr},
                   {"both", nullptr}});
  json.key("by_head");
  json.begin_object();
  for (const Attention attention : {Attention::encoder, Attention::decoder, Attention::cross}) {
    json.key(fmt::format("{}_zero_z", name(attention)));
    write_heads(json, why.zero_z[static_cast<int>(attention)]);
  }
  json.end_object();
  json.member("what_ifs", why.what_ifs);
  json.member("seconds", report.seconds);
  json.key("receipts");
  write_receipts(json, why.receipts);
  json.end_object();
  json.end_document();
}

void write_csv(Output& out, const TwoTextWhyReport& report) {
  const TwoTextWhy& why = report.why;
  CsvWriter csv(out);
  for (const char* name :
       {"part", "position", "text", "attention", "hide_from_last", "hide_from_all", "hide_in_encoder"})
    csv.text(name);
  csv.end_row();
  const auto rows = [&](const char* part, const std::vector<TokenPiece>& tokens,
                        const std::vector<TokenColumn>& columns) {
    for (std::size_t s = 0; s < tokens.size(); ++s) {
      csv.text(part);
      csv.integer(static_cast<std::int64_t>(s));
      csv.text(tokens[s].bytes);
      for (const TokenColumn& column : columns)
        csv.number(column.values != nullptr ? (*column.values)[s] : std::numeric_limits<double>::quiet_NaN());
      csv.end_row();
    }
  };
  rows("source", report.source, source_columns(why.source));
  rows("target", report.tokens,
       {{"attention", &why.target.attention},
        {"hide_from_last", &why.target.hide_from_last},
        {"hide_from_all", &why.target.hide_from_all},
        {"hide_in_encoder", nullptr}});
}

}  // namespace regard
