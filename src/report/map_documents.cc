// A map as a document and as arrays.

#include <algorithm>
#include <cmath>

#include "report/json_documents.h"
#include "report/map_result.h"
#include "report/npz_writer.h"

namespace regard {

float largest_cell(const TileMap& map) {
  float largest = 0;
  for (std::int64_t i = 0; i < map.cells.size(); ++i)
    if (std::isfinite(map.cells.data()[i])) largest = std::max(largest, map.cells.data()[i]);
  return largest;
}

Tensor<float, 2> heats(const TileMap& map) {
  const float largest = largest_cell(map);
  Tensor<float, 2> heats(map.cells.shape());
  for (std::int64_t i = 0; i < heats.size(); ++i) {
    const float cell = map.cells.data()[i];
    if (std::isfinite(cell) && largest > 0) heats.data()[i] = std::sqrt(cell / largest);
  }
  return heats;
}

void write_json(Output& out, const MapResult& result) {
  JsonWriter json(out);
  begin_document(json, "map", &result.model, result.tokens);
  json.member("layer", result.map.request.layer);
  json.member("head", result.map.request.head);
  json.member("pool", name(result.map.request.pooling));
  json.key("shape");
  json.integers(result.map.cells.shape());
  json.key("row_edges");
  json.integers(result.map.rows);
  json.key("key_edges");
  json.integers(result.map.keys);
  json.key("cells");
  json.numbers(result.map.cells.view());
  json.member("seconds", result.seconds);
  json.end_object();
  json.end_document();
}

void write_npz(Output& out, const MapResult& result) {
  NpzWriter npz(out);
  const TileMap& map = result.map;
  const std::int64_t place[] = {map.request.layer, map.request.head};
  npz.add("cells", std::span<const float>(map.cells.data(), static_cast<std::size_t>(map.cells.size())),
          {map.cells.shape().begin(), map.cells.shape().end()});
  npz.add("row_edges", std::span<const std::int64_t>(map.rows), {std::ssize(map.rows)});
  npz.add("key_edges", std::span<const std::int64_t>(map.keys), {std::ssize(map.keys)});
  npz.add("layer", std::span(place).first(1), {});
  npz.add("head", std::span(place).last(1), {});
  npz.finish();
}

}  // namespace regard
