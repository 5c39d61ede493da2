// The dense product by panels: some outputs' weights are unpacked to f32, turned, for a stretch of k, and then used for
// all rows of x at hand.

#if defined(REGARD_KERNELS_PANELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_PANELS_INL_H
#undef REGARD_KERNELS_PANELS_INL_H
#else
#define REGARD_KERNELS_PANELS_INL_H
#endif

#include <algorithm>

#include "kernels/formats-inl.h"
#include "kernels/matmul.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

inline constexpr std::int64_t kLaneCount = static_cast<std::int64_t>(kLanes);

// Rows of a register tile: with three vectors of outputs, 12 sums fill the 16 registers of AVX2, 24 the 32 of AVX-512.
inline constexpr int kTileRows = kLanes == 16 ? 8 : 4;

struct PanelShape {
  std::int64_t vectors, depth;  // outputs / kLanes, k
  constexpr std::int64_t width() const { return vectors * kLaneCount; }
};
// A tile's rows hide the latency of its chains. 24 KiB with AVX2: it stays in the first cache.
inline constexpr PanelShape kManyRows{3, kChain};
// One row needs six chains to do so; half the size leaves the first cache room for the weights' bytes that stream in.
inline constexpr PanelShape kFewRows{6, kChain / 4};
inline constexpr std::int64_t kFewest = 2;  // up to so many rows are few

inline constexpr std::int64_t kRowChunk = 256;  // 256 rows x 256 k of x are a quarter of the second cache

// The rows of outputs [first, first + width); past the last output its row is repeated.
inline void PanelRows(const Matrix& w, std::int64_t first, std::int64_t width, const std::byte** rows) {
  for (std::int64_t i = 0; i < width; ++i) rows[i] = w.row(std::min(first + i, w.rows - 1));
}

// Where in a row number k is stored.
inline std::int64_t StoredBytes(const Matrix& w, std::int64_t k) {
  const DTypeInfo& type = info(w.dtype);
  return k * type.block_bytes / type.block_elements;
}

// How far beyond a row of the panel at hand the weights are that will be needed next: in the next panel if that is not
// so far that they would be gone from the second cache again, else further on in the row. 0 if there are none.
inline std::ptrdiff_t NextWeights(const Matrix& w, std::int64_t first, std::int64_t width) {
  constexpr std::int64_t kNear = 256 << 10, kInRow = 1 << 10;
  if (w.row_stride > kNear / width) return kInRow;
  return first + 2 * width <= w.rows ? width * w.row_stride : 0;
}

// Stored weights that will be needed soon: bytes [begin, end) of some rows.
struct WeightsAhead {
  const std::byte* const* rows;
  std::int64_t count, begin, end;
  // Asks for the rows whose turn it is when `done` of `all` steps are done, where `before` of them were.
  void fetch(std::int64_t before, std::int64_t done, std::int64_t all) const {
    const std::int64_t first = count * before / all;
    Prefetch(rows + first, count * done / all - first, begin, end);
  }
};

// Tiles down the rows of x; with many of them the weights ahead are fetched between tiles, because asked for all at
// once they would be waited for.
inline void RunTiles(bool few, const std::int64_t all, TileJob job, const WeightsAhead& ahead) {
  std::int64_t rows = all;
  const auto advance = [&](std::int64_t n) {
    job.x += n * job.x_stride;
    job.y += n * job.y_stride;
    job.chain += n * static_cast<std::ptrdiff_t>(job.stride);
    ahead.fetch(all - rows, all - rows + n, all);
    rows -= n;
  };
  if (few) {
    if (rows == 2) return Tile<2, kFewRows.vectors>(job);
    return Tile<1, kFewRows.vectors>(job);
  }
  while (rows >= kTileRows) {
    Tile<kTileRows, kManyRows.vectors>(job);
    advance(kTileRows);
  }
  while (rows >= 4) {
    Tile<4, kManyRows.vectors>(job);
    advance(4);
  }
  if (rows == 3) Tile<3, kManyRows.vectors>(job);
  if (rows == 2) Tile<2, kManyRows.vectors>(job);
  if (rows == 1) Tile<1, kManyRows.vectors>(job);
  if (rows > 0) advance(rows);
}

// At most kRowChunk rows of x times some panels of outputs: what one thread does at a time.
class PanelTask {
 public:
  PanelTask(const Weights& weights, View<const float, 2> x, View<float, 2> y, bool few)
      : weights_(weights), w_(weights.stored), x_(x), y_(y), few_(few), shape_(few ? kFewRows : kManyRows) {}

  void Run(std::int64_t panel_begin, std::int64_t panel_end) {
    panel_begin_ = panel_begin;
    // Few rows: follow the weights as they lie in memory. Many rows: keep their 256 k of x in the second cache.
    if (few_) {
      for (std::int64_t p = panel_begin; p < panel_end; ++p) {
        for (std::int64_t block = 0; block == 0 || block < w_.cols; block += kChain) RunBlock(p, block);
      }
    } else {
      for (std::int64_t block = 0; block == 0 || block < w_.cols; block += kChain) {
        for (std::int64_t p = panel_begin; p < panel_end; ++p) RunBlock(p, block);
      }
    }
    const std::int64_t first = (panel_end - 1) * shape_.width();
    if (first + shape_.width() > w_.rows) {
      for (std::int64_t r = 0; r < x_.shape[0]; ++r)
        std::copy_n(edge_ + r * shape_.width(), w_.rows - first, &y_(r, first));
    }
  }

 private:
  void RunBlock(std::int64_t p, std::int64_t block) {
    const std::int64_t width = shape_.width(), first = p * width;
    const std::int64_t block_end = std::min(block + kChain, w_.cols);
    const bool at_edge = first + width > w_.rows;
    const std::byte* rows[kFewRows.width()];
    PanelRows(w_, first, width, rows);
    TileJob job;
    job.panel = panel_;
    job.stride = static_cast<std::size_t>(width);
    job.x_stride = x_.stride[0];
    job.y = at_edge ? edge_ : y_.data + first;
    job.y_stride = at_edge ? width : y_.stride[0];
    job.chain = chain_;
    const std::ptrdiff_t ahead = weights_.packed == nullptr ? NextWeights(w_, first, width) : 0;
    if (ahead != 0 && p == panel_begin_ && block == 0)
      Prefetch(rows, width, 0, StoredBytes(w_, std::min(w_.cols, kChain)));
    // Rows of f32 are foreseen by the processors with AVX-512 that were measured: asking only kept one row waiting.
    const bool asks = few_ && (kLanes != 16 || w_.dtype != DType::f32);
    for (std::int64_t k = block; k == block || k < block_end; k += shape_.depth) {
      const std::int64_t end = std::min(k + shape_.depth, block_end);
      for (std::int64_t lane = 0; lane < width; lane += kLaneCount) {
        if (ahead != 0 && asks)
          Prefetch(rows + lane, kLaneCount, ahead + StoredBytes(w_, k), ahead + StoredBytes(w_, end));
        Unpack(first + lane, k, end, rows + lane, panel_ + lane);
      }
      job.count = static_cast<std::size_t>(end - k);
      job.x = x_.data + k;
      job.resume = k != block;
      job.end = end < block_end ? TileEnd::keep : block == 0 ? TileEnd::set : TileEnd::add;
      RunTiles(few_, x_.shape[0], job,
               {rows, ahead != 0 && !few_ ? width : 0, ahead + StoredBytes(w_, k), ahead + StoredBytes(w_, end)});
    }
  }

  // out[(k - begin) * width + r] = W[n + r, k] of kLanes rows for k in [begin, end), at most one chain.
  void Unpack(std::int64_t n, std::int64_t begin, std::int64_t end, const std::byte* const* rows, float* out) {
    const Format& format = weights_.format;
    const auto stride = static_cast<std::size_t>(shape_.width());
    if (!format.quantised()) {
      if (weights_.packed == nullptr) return format.unpack(rows, begin, end, out, stride);
      return format.halves->widen(weights_.Halves(n, begin), end - begin, out, stride);
    }
    const StripBlock block = weights_.Block(n, begin, end, rows, strip_);
    ReadScales(block, end - begin, format.numbers, scales_);
    format.kernels->widen(WordsOf(block, end - begin, format.numbers), scales_, end - begin, format.numbers.sub_bits,
                          out, stride);
  }

  const Weights& weights_;
  const Matrix& w_;
  const View<const float, 2> x_;
  const View<float, 2> y_;
  const bool few_;
  const PanelShape shape_;
  std::int64_t panel_begin_ = 0;
  alignas(64) std::byte strip_[kMostBlockBytes];
  Scales scales_;
  alignas(64) float panel_[std::max(kManyRows.width() * kManyRows.depth, kFewRows.width() * kFewRows.depth)];
  alignas(64) float chain_[kFewest * kFewRows.width()];    // sums of a block that is half done
  alignas(64) float edge_[kRowChunk * kManyRows.width()];  // y of a panel that reaches past the last output
};

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
