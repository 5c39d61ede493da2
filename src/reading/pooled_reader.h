#pragma once
// A rectangle of a pattern at any zoom: rows [row_begin, row_end) by keys [key_begin, key_end) of one head, pooled to a
// few cells. Streamed: memory is the cells and not the rectangle. Cell (y, x) holds rows [rows[y], rows[y + 1]) and
// keys [keys[x], keys[x + 1]), as even as whole numbers can be; a key that a row may not read counts as weight 0. The
// same bits for any tiles, threads and chunks: a maximum has no order, sums are exact (reading/exact_sum.h).

#include <cstdint>
#include <string_view>
#include <vector>

#include "attention/read.h"
#include "tensor/buffer.h"

namespace regard {

enum class Pooling { max, sum, mean };
std::string_view name(Pooling pooling);
Pooling parse_pooling(std::string_view text);  // Error{usage} naming those there are

struct Rectangle {
  std::int64_t row_begin = 0, row_end = 0;
  std::int64_t key_begin = 0, key_end = 0;
};

// Edges that cut [begin, end) into `cells` parts, or into single numbers where it has fewer: edge k is begin + ceil(k n
// / cells).
std::vector<std::int64_t> even_edges(std::int64_t begin, std::int64_t end, std::int64_t cells);

class PooledReader final : public Reader {
 public:
  // height, width: cells at most, at least 1. Error{usage} for an empty rectangle.
  PooledReader(const Rectangle& rectangle, std::int64_t height, std::int64_t width, Pooling pooling, std::int32_t head,
               std::int32_t sequence = 0);

  void begin(const Problem& problem, int threads) override;
  void tile(const WeightTile& tile, int thread) override;
  void finish() override;

  const std::vector<std::int64_t>& rows() const { return row_edges_; }  // [height + 1]
  const std::vector<std::int64_t>& keys() const { return key_edges_; }  // [width + 1]
  Tensor<float, 2> cells() const;                                       // [height][width]
  static std::int64_t bytes_needed(std::int64_t height, std::int64_t width);

 private:
  std::int64_t height() const { return std::ssize(row_edges_) - 1; }
  std::int64_t width() const { return std::ssize(key_edges_) - 1; }

  Rectangle rectangle_;
  Pooling pooling_;
  std::int32_t head_, sequence_;
  std::vector<std::int64_t> row_edges_, key_edges_;
  std::span<const QueryRow> problem_rows_;
  // Of all passes, and of each thread in this one: the exact sum of a cell, or the bits of its maximum, which as whole
  // numbers are in the order of the weights.
  std::vector<std::int64_t> cells_;
  std::vector<std::vector<std::int64_t>> parts_;
};

}  // namespace regard
