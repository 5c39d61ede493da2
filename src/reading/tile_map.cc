#include "reading/tile_map.h"

#include <algorithm>

#include "model/blocks.h"
#include "model/cached_keys.h"
#include "model/forward.h"
#include "tensor/error.h"

namespace regard {
namespace {

// What a map takes: the rows up to its last, or the whole text at once where rows read both ways.
std::int64_t rows_run(const MapRequest& request, const ModelConfig& config, std::int64_t tokens) {
  return config.causal ? request.rectangle.row_end : tokens;
}

// What the layers up to the map's own need: a cache of theirs only.
ModelConfig lower_part(const ModelConfig& config, std::int64_t layer) {
  ModelConfig part = config;
  part.layers = layer + 1;
  return part;
}

class MapTap final : public Tap {
 public:
  MapTap(Reader& reader, std::int64_t layer, Tap* watch) : reader_(reader), layer_(layer), watch_(watch) {}
  std::vector<Reader*> readers(std::int64_t layer, std::span<const Row> rows) override {
    std::vector<Reader*> all;
    if (watch_ != nullptr) all = watch_->readers(layer, rows);
    if (layer == layer_) all.push_back(&reader_);
    return all;
  }

 private:
  Reader& reader_;
  std::int64_t layer_;
  Tap* watch_;
};

void check(std::int64_t index, std::int64_t count, const char* what) {
  if (index < 0 || index >= count)
    throw Error(ErrorCode::usage, fmt::format("there is no {} {}", what, index),
                fmt::format("there are {} {}s: 0 to {}", count, what, count - 1));
}

}  // namespace

TileMap read_map(const Model& model, std::span<const std::int32_t> ids, const MapRequest& request, Progress* progress,
                 Tap* watch) {
  const ModelConfig& c = model.config();
  const Rectangle& rectangle = request.rectangle;
  check(request.layer, c.layers, "layer");
  check(request.head, c.heads, "head");
  PooledReader reader(rectangle, request.height, request.width, request.pooling,
                      static_cast<std::int32_t>(request.head));
  check(rectangle.row_end - 1, std::ssize(ids), "row");
  check(rectangle.key_end - 1, std::ssize(ids), "key");
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= c.vocabulary)
      throw Error(ErrorCode::bad_input, fmt::format("token id {} is outside the vocabulary of {}", id, c.vocabulary),
                  fmt::format("ids go from 0 to {}", c.vocabulary - 1));
  }

  State state(lower_part(c, request.layer), 1, std::ssize(ids));
  MapTap tap(reader, request.layer, watch);
  const std::int64_t total = rows_run(request, c, std::ssize(ids)), chunk = rows_per_pass(c, total);
  state.cache.reserve(0, total);
  Tensor<float, 2> resid({chunk, c.width});
  for (std::int64_t first = 0; first < total; first += chunk) {
    const std::int64_t n = std::min(chunk, total - first);
    Stream stream{{}, resid.view().slice(0, n)};
    for (std::int64_t i = first; i < first + n; ++i) stream.rows.push_back({ids[i], 0, i});
    embed(model, stream.rows, stream.resid);
    CachedKeys keys(state.cache, {first + n});
    Blocks blocks(model, state, keys, &tap);
    for (std::int64_t l = 0; l < request.layer; ++l) blocks.run(l, stream);
    // In the map's layer all rows leave keys; only those of the map read.
    std::vector<std::int64_t> kept;
    for (std::int64_t i = std::max(first, rectangle.row_begin); i < std::min(first + n, rectangle.row_end); ++i)
      kept.push_back(i - first);
    blocks.run(request.layer, stream, &kept);
    state.cache.set_length(0, first + n);
    if (progress != nullptr) progress->at("reading", first + n, total);
  }
  return {request, reader.rows(), reader.keys(), reader.cells()};
}

std::int64_t bytes_needed(const MapRequest& request, const ModelConfig& config, std::int64_t tokens) {
  const std::int64_t rows = rows_run(request, config, tokens);
  return KeyValueCache::bytes_for(lower_part(config, request.layer), rows) +
         scratch_bytes(config, rows_per_pass(config, rows)) + PooledReader::bytes_needed(request.height, request.width);
}

}  // namespace regard
