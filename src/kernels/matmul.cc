#include "kernels/matmul.h"

#include <algorithm>

#include "kernels/packed.h"
#include "parallel/parallel_for.h"
#include "tensor/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
// clang-format off: foreach_target comes first
#include "hwy/foreach_target.h"
// Fully optimised, the emulated target takes most of the time that there is to compile this file; it is for tests.
#if HWY_TARGET == HWY_EMU128
#pragma GCC push_options
#pragma GCC optimize("Og")
#endif
#include "kernels/chains-inl.h"
#include "kernels/formats-inl.h"
#include "kernels/panels-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// packed: the strips of a PackedMatrix, or null.
void Product(const Matrix& w, const std::byte* packed, View<const float, 2> x, View<float, 2> y) {
  const Format format = FormatOf(w.dtype);
  const Weights weights{w, format, packed};
  const std::int64_t rows = x.shape[0];
  const bool few = rows <= kFewest, chained = rows <= kMostChained && (packed != nullptr || format.quantised());
  const std::int64_t width = chained ? kChainedWidth : (few ? kFewRows : kManyRows).width();
  const std::int64_t panels = (w.rows + width - 1) / width;
  const std::int64_t chunks = (rows + kRowChunk - 1) / kRowChunk;
  // About equal chunks of whole tiles.
  const std::int64_t chunk = ((rows + chunks - 1) / chunks + kTileRows - 1) / kTileRows * kTileRows;
  // Enough tasks that threads end at about the same time, large enough that handing one out costs nothing. A few rows
  // wait for memory, and weights are asked for in time within a task only, so a small matrix is cut once for each
  // thread.
  const std::int64_t threads = thread_count();
  const std::int64_t even = chained || few ? (panels + threads - 1) / threads : panels * chunks / (8 * threads);
  const std::int64_t group = std::clamp<std::int64_t>(even, 1, 16);
  const std::int64_t groups = (panels + group - 1) / group;
  const auto run = [&](std::int64_t index, int) {
    const std::int64_t row = index / groups * chunk, row_end = std::min(row + chunk, rows);
    const std::int64_t panel = index % groups * group, panel_end = std::min(panel + group, panels);
    if (chained)
      ChainTask(weights, x, y, panel * width, std::min(panel_end * width, w.rows));
    else
      PanelTask(weights, x.slice(row, row_end), y.slice(row, row_end), few).Run(panel, panel_end);
  };
  // A product of less than some microseconds is done before another thread is awake.
  constexpr std::int64_t kSerial = 1 << 16;
  if (w.rows * w.cols * (rows + 2) <= kSerial) {
    for (std::int64_t i = 0; i < chunks * groups; ++i) run(i, 0);
  } else {
    parallel_for(chunks * groups, run);
  }
}

bool Packs(DType type) { return FormatOf(type).read != nullptr; }

std::int64_t PackedBytes(const Matrix& w) {
  return (w.rows + kStrip - 1) / kStrip * FormatOf(w.dtype).StripBytes(w.cols);
}

void Pack(const Matrix& w, std::byte* strips) {
  const Format format = FormatOf(w.dtype);
  const std::int64_t bytes = format.StripBytes(w.cols);
  parallel_for((w.rows + kStrip - 1) / kStrip, [&](std::int64_t strip, int) {
    for (std::int64_t k = 0; k < w.cols; k += kChain) {
      std::byte* block = strips + strip * bytes + format.StripBytes(k);
      for (std::int64_t lane = 0; lane < kStrip; lane += kLaneCount) {
        const std::byte* rows[kLanes];
        PanelRows(w, strip * kStrip + lane, kLaneCount, rows);
        format.read(rows, k, std::min(k + kChain, w.cols), block, lane);
      }
    }
  });
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#if HWY_TARGET == HWY_EMU128
#pragma GCC pop_options
#endif

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(Product);
HWY_EXPORT(Packs);
HWY_EXPORT(PackedBytes);
HWY_EXPORT(Pack);

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::bad_input, "matmul: " + what, "check the shapes of the weights and of the rows");
}

void check(const Matrix& w) {
  const DTypeInfo& type = info(w.dtype);
  if (w.rows < 0 || w.cols < 0) refuse("a negative extent");
  if (w.cols % type.block_elements != 0)
    refuse(fmt::format("{} inputs are not a whole number of {} blocks of {}", w.cols, type.name, type.block_elements));
}

void check(const Matrix& w, View<const float, 2> x, View<float, 2> y) {
  check(w);
  if (x.shape[0] < 0) refuse("a negative extent");
  if (x.shape[1] != w.cols)
    refuse(fmt::format("rows of {} numbers do not fit weights of {} x {}", x.shape[1], w.rows, w.cols));
  if (y.shape != std::array<std::int64_t, 2>{x.shape[0], w.rows})
    refuse(fmt::format("{} rows times {} outputs do not fit a result of {} x {}", x.shape[0], w.rows, y.shape[0],
                       y.shape[1]));
  if ((x.shape[1] > 1 && x.stride[1] != 1) || (y.shape[1] > 1 && y.stride[1] != 1)) refuse("a row with gaps");
}

}  // namespace

void matmul(const Matrix& w, View<const float, 2> x, View<float, 2> y) {
  check(w, x, y);
  if (x.shape[0] > 0 && w.rows > 0) HWY_DYNAMIC_DISPATCH(Product)(w, nullptr, x, y);
}

void matmul(const PackedMatrix& w, View<const float, 2> x, View<float, 2> y) {
  check(w.stored, x, y);
  if (x.shape[0] > 0 && w.stored.rows > 0) HWY_DYNAMIC_DISPATCH(Product)(w.stored, w.strips, x, y);
}

bool packs(DType type) { return HWY_DYNAMIC_DISPATCH(Packs)(type); }

std::int64_t packed_bytes(const Matrix& w) {
  check(w);
  if (!packs(w.dtype)) refuse(fmt::format("weights of type {} are not packed", info(w.dtype).name));
  constexpr std::int64_t kLine = 64;
  return (HWY_DYNAMIC_DISPATCH(PackedBytes)(w) + kLine - 1) / kLine * kLine;
}

PackedMatrix pack(const Matrix& w, std::byte* memory) {
  packed_bytes(w);
  HWY_DYNAMIC_DISPATCH(Pack)(w, memory);
  return {w, memory};
}

}  // namespace regard
#endif
