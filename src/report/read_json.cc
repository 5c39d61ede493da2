// The JSON document of `read`.

#include <algorithm>

#include "report/json_documents.h"
#include "report/read_parts.h"
#include "report/read_result.h"

namespace regard {
namespace {

void write_top(JsonWriter& json, const Reading& reading) {
  const ReadingRequest& request = reading.request;
  json.key("top");
  json.begin_array();
  for (std::size_t l = 0; l < request.layers.size(); ++l) {
    for (std::size_t h = 0; h < request.heads.size(); ++h) {
      for (std::size_t r = 0; r < request.rows.size(); ++r) {
        json.begin_object();
        json.member("layer", request.layers[l]);
        json.member("head", request.heads[h]);
        json.member("row", request.rows[r]);
        json.key("reads");
        json.begin_array();
        for (std::int64_t k = 0; k < reading.top_key.shape()[3] && reading.top_key(l, h, r, k) >= 0; ++k) {
          json.begin_object();
          json.member("key", reading.top_key(l, h, r, k));
          json.member("weight", static_cast<double>(reading.top_weight(l, h, r, k)));
          json.end_object();
        }
        json.end_array();
        json.end_object();
      }
    }
  }
  json.end_array();
}

template <int Rank>
void member(JsonWriter& json, std::string_view name, const Tensor<float, Rank>& values) {
  json.key(name);
  json.numbers(values.view());
}

void write_statistic(JsonWriter& json, const ReadResult& result, Statistic statistic) {
  const Reading& reading = result.reading;
  const std::string_view name = info(statistic).name;
  if (const auto found = reading.per_row.find(statistic); found != reading.per_row.end())
    return member(json, name, found->second);
  switch (statistic) {
    case Statistic::column_sum:
      return member(json, name, reading.column_sum);
    case Statistic::distances:
      json.key("distance_edges");
      json.integers(reading.distance_edges);
      return member(json, name, reading.distances);
    case Statistic::copying:
      return member(json, name, reading.copying);
    case Statistic::value_norm:
      return member(json, name, reading.value_norm);
    case Statistic::mixing:
      return member(json, name, reading.mixing);
    case Statistic::norm_weighted_column_sum:
      return member(json, name, reading.norm_weighted_column_sum);
    case Statistic::norm_weighted:
      return member(json, name, reading.norm_weighted);
    case Statistic::rollout:
      return member(json, name, reading.rollout);
    case Statistic::flow:
      member(json, name, reading.flow.positions);
      return member(json, "flow_residual", reading.flow.residual);
    case Statistic::lens:
      return write_lens(json, result);
    case Statistic::direct:
      return write_direct(json, result);
    case Statistic::weights:
      return member(json, name, reading.weights);
    case Statistic::top:
      return write_top(json, reading);
    case Statistic::groups:
      return member(json, name, reading.group_mass);
    default:
      return;
  }
}

}  // namespace

bool ReadResult::writes(Statistic statistic) const {
  return std::find(asked.begin(), asked.end(), statistic) != asked.end();
}

namespace {

void write_reading(JsonWriter& json, const ReadResult& result) {
  const Reading& reading = result.reading;
  json.key("layers");
  json.integers(reading.request.layers);
  json.key("heads");
  json.integers(reading.request.heads);
  json.key("rows");
  json.integers(reading.request.rows);
  write_candidates(json, result.next);
  json.member("next_row", result.next_row);
  json.key("receipts");
  write_receipts(json, result.edits);
  json.key("attention_sink");
  if (result.sink) {
    json.begin_object();
    json.member("position", result.sink->position);
    json.member("share", result.sink->share);
    json.member("mass", result.sink->mass);
    json.end_object();
  } else {
    json.null();
  }
  for (const Statistic statistic : result.asked) write_statistic(json, result, statistic);
  json.key("mean");
  json.begin_object();
  for (const auto& [statistic, values] : reading.mean)
    if (result.writes(statistic)) member(json, info(statistic).name, values);
  json.end_object();
  if (reading.request.resid) member(json, "resid", reading.resid);
  json.member("seconds", result.seconds);
  json.member("tokens_per_second", result.tokens_per_second);
}

}  // namespace

void write_json(Output& out, const ReadResult& result) {
  JsonWriter json(out);
  begin_document(json, "read", &result.model, result.tokens);
  if (!result.attention.empty()) json.member("attention", result.attention);
  if (result.reads_another_text()) write_tokens(json, "keys", result.keys);
  write_reading(json, result);
  json.end_object();
  json.end_document();
}

void write_json(Output& out, std::span<const ReadResult> attentions, const std::vector<TokenPiece>& source) {
  JsonWriter json(out);
  begin_document(json, "read", &attentions.back().model, attentions.back().tokens);
  write_tokens(json, "source", source);
  for (const ReadResult& result : attentions) {
    json.key(result.attention);
    json.begin_object();
    write_reading(json, result);
    json.end_object();
  }
  json.end_object();
  json.end_document();
}

}  // namespace regard
