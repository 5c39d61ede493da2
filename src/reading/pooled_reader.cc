#include "reading/pooled_reader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "parallel/parallel_for.h"
#include "reading/exact_sum.h"
#include "tensor/error.h"

namespace regard {
namespace {

// Which part between the edges a number is in.
std::int64_t part_of(const std::vector<std::int64_t>& edges, std::int64_t at) {
  return std::upper_bound(edges.begin(), edges.end(), at) - edges.begin() - 1;
}

// Weights are not negative, so their bits are in their order; what is not a number is above all.
std::int64_t ordered(float weight) {
  return std::isnan(weight) ? std::numeric_limits<std::int32_t>::max() : std::bit_cast<std::int32_t>(weight);
}

float weight_of(std::int64_t ordered) {
  return ordered == std::numeric_limits<std::int32_t>::max() ? std::numeric_limits<float>::quiet_NaN()
                                                             : std::bit_cast<float>(static_cast<std::int32_t>(ordered));
}

}  // namespace

std::string_view name(Pooling pooling) {
  return pooling == Pooling::max ? "max" : pooling == Pooling::sum ? "sum" : "mean";
}

Pooling parse_pooling(std::string_view text) {
  for (const Pooling pooling : {Pooling::max, Pooling::sum, Pooling::mean})
    if (text == name(pooling)) return pooling;
  throw Error(ErrorCode::usage, fmt::format("there is no pooling '{}'", text), "there are max, sum and mean");
}

std::vector<std::int64_t> even_edges(std::int64_t begin, std::int64_t end, std::int64_t cells) {
  const std::int64_t n = end - begin, parts = std::min(cells, n);
  std::vector<std::int64_t> edges;
  for (std::int64_t k = 0; k <= parts; ++k) edges.push_back(begin + (k * n + parts - 1) / parts);
  return edges;
}

PooledReader::PooledReader(const Rectangle& rectangle, std::int64_t height, std::int64_t width, Pooling pooling,
                           std::int32_t head, std::int32_t sequence)
    : rectangle_(rectangle), pooling_(pooling), head_(head), sequence_(sequence) {
  if (rectangle.row_begin < 0 || rectangle.row_end <= rectangle.row_begin || rectangle.key_begin < 0 ||
      rectangle.key_end <= rectangle.key_begin)
    throw Error(ErrorCode::usage,
                fmt::format("rows {}:{} by keys {}:{} is no rectangle", rectangle.row_begin, rectangle.row_end,
                            rectangle.key_begin, rectangle.key_end),
                "give a first and a later last");
  if (height < 1 || width < 1)
    throw Error(ErrorCode::usage, fmt::format("a map of {} by {} cells cannot be had", width, height),
                "ask for at least one");
  row_edges_ = even_edges(rectangle.row_begin, rectangle.row_end, height);
  key_edges_ = even_edges(rectangle.key_begin, rectangle.key_end, width);
  cells_.assign(static_cast<std::size_t>(this->height() * this->width()), 0);
}

void PooledReader::begin(const Problem& problem, int threads) {
  problem_rows_ = problem.rows;
  parts_.resize(std::max(parts_.size(), static_cast<std::size_t>(threads)));
}

void PooledReader::tile(const WeightTile& tile, int thread) {
  const std::int64_t first = std::max(tile.key_begin, rectangle_.key_begin);
  const std::int64_t last = std::min(tile.key_begin + tile.keys, rectangle_.key_end);
  if (tile.sequence != sequence_ || first >= last) return;
  std::vector<std::int64_t>& cells = parts_[thread];
  for (int lane = 0; lane < tile.lanes; ++lane) {
    const std::int64_t row = problem_rows_[tile.row[lane]].position;
    if (tile.head[lane] != head_ || row < rectangle_.row_begin || row >= rectangle_.row_end) continue;
    if (cells.empty()) cells.assign(cells_.size(), 0);
    std::int64_t* of_row = cells.data() + part_of(row_edges_, row) * width();
    std::int64_t x = part_of(key_edges_, first);
    for (std::int64_t key = first; key < last; ++key) {
      if (key == key_edges_[x + 1]) ++x;
      const float weight = tile.weight[(key - tile.key_begin) * tile.stride + lane];
      if (pooling_ == Pooling::max)
        of_row[x] = std::max(of_row[x], ordered(weight));
      else
        add_weight(of_row[x], weight);
    }
  }
}

void PooledReader::finish() {
  for (std::vector<std::int64_t>& part : parts_) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (pooling_ == Pooling::max)
        cells_[i] = std::max(cells_[i], part[i]);
      else
        add_fixed(cells_[i], part[i]);
      part[i] = 0;
    }
  }
}

Tensor<float, 2> PooledReader::cells() const {
  Tensor<float, 2> values({height(), width()});
  for (std::int64_t y = 0; y < height(); ++y) {
    for (std::int64_t x = 0; x < width(); ++x) {
      const std::int64_t cell = cells_[y * width() + x];
      const auto pooled =
          static_cast<double>((row_edges_[y + 1] - row_edges_[y]) * (key_edges_[x + 1] - key_edges_[x]));
      values(y, x) = pooling_ == Pooling::max
                         ? weight_of(cell)
                         : static_cast<float>(from_fixed(cell) / (pooling_ == Pooling::mean ? pooled : 1));
    }
  }
  return values;
}

std::int64_t PooledReader::bytes_needed(std::int64_t height, std::int64_t width) {
  return height * width *
         ((1 + thread_count()) * static_cast<std::int64_t>(sizeof(std::int64_t)) +
          static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace regard
