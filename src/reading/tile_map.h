#pragma once
// A rectangle of a text's pattern: only what it takes is run, the layers up to its own and, where rows read to the
// left, the rows up to its last.

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/tap.h"
#include "parallel/progress.h"
#include "reading/pooled_reader.h"

namespace regard {

struct MapRequest {
  std::int64_t layer = 0, head = 0;
  Rectangle rectangle;
  std::int64_t height = 512, width = 512;  // cells at most
  Pooling pooling = Pooling::max;
};

struct TileMap {
  MapRequest request;
  std::vector<std::int64_t> rows, keys;  // edges of the cells
  Tensor<float, 2> cells;                // [height][width]
};

// ids: the whole text. Error{usage} for a layer, head, row or key that is not there. `watch` sees the layers run.
TileMap read_map(const Model& model, std::span<const std::int32_t> ids, const MapRequest& request,
                 Progress* progress = nullptr, Tap* watch = nullptr);
// Beside the file; the cache included.
std::int64_t bytes_needed(const MapRequest& request, const ModelConfig& config, std::int64_t tokens);

}  // namespace regard
