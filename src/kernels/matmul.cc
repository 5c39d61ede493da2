#include "kernels/matmul.h"

#include <algorithm>

#include "parallel/parallel_for.h"
#include "tensor/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
// clang-format off: foreach_target comes first
#include "hwy/foreach_target.h"
#include "kernels/panels-inl.h"
#include "kernels/read_blocks-inl.h"
#include "kernels/read_superblocks-inl.h"
#include "kernels/unpack_plain-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// sums[r, n] = the chain over k in [begin, end) of x's row r and weight row n (words-inl.h).
using ChainFunction = void (*)(const std::byte* const* rows, std::int64_t begin, std::int64_t end, const float* x,
                               std::ptrdiff_t x_stride, std::ptrdiff_t ahead, float* sums);

// Weight rows taken together, in vectors, for one and for two rows of x: enough chains to hide the latency of one, few
// enough sums and minima for 16 registers.
constexpr std::size_t kGroupsOfOne = 4, kGroupsOfTwo = 3;

// What a stored type needs; the chains are null for plain types.
struct TypeKernels {
  UnpackFunction unpack;
  ChainFunction chain_of_one, chain_of_two;
};
template <class Type>
TypeKernels Quantised() {
  return {UnpackUnits<Type>, ChainBlock<Type, 1, kGroupsOfOne>, ChainBlock<Type, 2, kGroupsOfTwo>};
}
TypeKernels KernelsOf(DType type) {
  switch (type) {
    case DType::f32:
      return {UnpackF32, nullptr, nullptr};
    case DType::f16:
      return {UnpackF16, nullptr, nullptr};
    case DType::bf16:
      return {UnpackBF16, nullptr, nullptr};
    case DType::f64:
      return {UnpackF64, nullptr, nullptr};
    case DType::q4_0:
      return Quantised<Q4_0>();
    case DType::q4_1:
      return Quantised<Q4_1>();
    case DType::q5_0:
      return Quantised<Q5_0>();
    case DType::q5_1:
      return Quantised<Q5_1>();
    case DType::q8_0:
      return Quantised<Q8_0>();
    case DType::q2_k:
      return Quantised<Q2_K>();
    case DType::q3_k:
      return Quantised<Q3_K>();
    case DType::q4_k:
      return Quantised<Q4_K>();
    case DType::q5_k:
      return Quantised<Q5_K>();
    case DType::q6_k:
      return Quantised<Q6_K>();
    case DType::iq4_nl:
      return Quantised<IQ4_NL>();
    case DType::iq4_xs:
      return Quantised<IQ4_XS>();
  }
  throw Error(ErrorCode::bad_input, "weights of a stored type that does not exist");
}

// One or two rows of x times quantised weights of outputs [begin, end), `width` at a time, widened in registers.
void ChainTask(const Matrix& w, ChainFunction chain, std::int64_t width, View<const float, 2> x, View<float, 2> y,
               std::int64_t begin, std::int64_t end) {
  const std::byte* rows[std::max(kGroupsOfOne, kGroupsOfTwo) * kLanes];
  alignas(64) float sums[std::max(kGroupsOfOne, 2 * kGroupsOfTwo) * kLanes];
  for (std::int64_t n = begin; n < end; n += width) {
    PanelRows(w, n, width, rows);
    const std::int64_t count = std::min(width, end - n);
    const std::ptrdiff_t ahead = NextWeights(w, n, width);
    for (std::int64_t block = 0; block == 0 || block < w.cols; block += kChain) {
      chain(rows, block, std::min(block + kChain, w.cols), x.data + block, x.stride[0], ahead, sums);
      for (std::int64_t r = 0; r < x.shape[0]; ++r) {
        float* to = &y(r, n);
        for (std::int64_t i = 0; i < count; ++i) to[i] = block == 0 ? sums[r * width + i] : to[i] + sums[r * width + i];
      }
    }
  }
}

void Product(const Matrix& w, View<const float, 2> x, View<float, 2> y) {
  const TypeKernels kernels = KernelsOf(w.dtype);
  const std::int64_t rows = x.shape[0];
  const bool few = rows <= kFewest, chained = few && kernels.chain_of_one != nullptr;
  const ChainFunction chain = rows == 1 ? kernels.chain_of_one : kernels.chain_of_two;
  const std::int64_t chained_width = static_cast<std::int64_t>(rows == 1 ? kGroupsOfOne : kGroupsOfTwo) * kLaneCount;
  const std::int64_t width = chained ? chained_width : (few ? kFewRows : kManyRows).width();
  const std::int64_t panels = (w.rows + width - 1) / width;
  const std::int64_t chunks = (rows + kRowChunk - 1) / kRowChunk;
  // About equal chunks of whole tiles.
  const std::int64_t chunk = ((rows + chunks - 1) / chunks + kTileRows - 1) / kTileRows * kTileRows;
  // Enough tasks that threads end at about the same time, large enough that handing one out costs nothing.
  const std::int64_t group = std::clamp<std::int64_t>(panels * chunks / (8 * thread_count()), 1, 16);
  const std::int64_t groups = (panels + group - 1) / group;
  const auto run = [&](std::int64_t index, int) {
    const std::int64_t row = index / groups * chunk, row_end = std::min(row + chunk, rows);
    const std::int64_t panel = index % groups * group, panel_end = std::min(panel + group, panels);
    if (chained)
      ChainTask(w, chain, width, x, y, panel * width, std::min(panel_end * width, w.rows));
    else
      PanelTask(w, kernels.unpack, x.slice(row, row_end), y.slice(row, row_end), few).Run(panel, panel_end);
  };
  // A product of less than some microseconds is done before another thread is awake.
  constexpr std::int64_t kSerial = 1 << 16;
  if (w.rows * w.cols * (rows + 2) <= kSerial) {
    for (std::int64_t i = 0; i < chunks * groups; ++i) run(i, 0);
  } else {
    parallel_for(chunks * groups, run);
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(Product);

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::bad_input, "matmul: " + what, "check the shapes of the weights and of the rows");
}

}  // namespace

void matmul(const Matrix& w, View<const float, 2> x, View<float, 2> y) {
  const DTypeInfo& type = info(w.dtype);
  if (w.rows < 0 || w.cols < 0 || x.shape[0] < 0) refuse("a negative extent");
  if (x.shape[1] != w.cols)
    refuse(fmt::format("rows of {} numbers do not fit weights of {} x {}", x.shape[1], w.rows, w.cols));
  if (y.shape != std::array<std::int64_t, 2>{x.shape[0], w.rows})
    refuse(fmt::format("{} rows times {} outputs do not fit a result of {} x {}", x.shape[0], w.rows, y.shape[0],
                       y.shape[1]));
  if (w.cols % type.block_elements != 0)
    refuse(fmt::format("{} inputs are not a whole number of {} blocks of {}", w.cols, type.name, type.block_elements));
  if ((x.shape[1] > 1 && x.stride[1] != 1) || (y.shape[1] > 1 && y.stride[1] != 1)) refuse("a row with gaps");
  if (x.shape[0] == 0 || w.rows == 0) return;
  HWY_DYNAMIC_DISPATCH(Product)(w, x, y);
}

}  // namespace regard
#endif
