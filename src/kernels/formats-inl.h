// The stored types as the dense product sees them: how each is read, and in which form its numbers are then used.

#if defined(REGARD_KERNELS_FORMATS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_FORMATS_INL_H
#undef REGARD_KERNELS_FORMATS_INL_H
#else
#define REGARD_KERNELS_FORMATS_INL_H
#endif

#include "kernels/read_blocks-inl.h"
#include "kernels/read_superblocks-inl.h"
#include "kernels/unpack_plain-inl.h"
#include "tensor/dtype.h"
#include "tensor/error.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// Weight rows taken together, in vectors, for one, two and four rows of x: enough chains to hide the latency of one,
// few enough sums, scales and minima for the registers (16 with AVX2, 32 with AVX-512).
inline constexpr std::size_t kGroupsOfOne = 4, kGroupsOfTwo = kLanes == 16 ? 4 : 3,
                             kGroupsOfFour = kLanes == 16 ? 4 : 2;

// What a form of the product does with numbers that have a scale for each kSub and minima or not.
struct NumberKernels {
  WidenFunction widen;
  ChainFunction chain_of_one, chain_of_two, chain_of_four;
};
template <int kSub, bool kMinimum>
inline constexpr NumberKernels kNumberKernels = {
    WidenBlock<kSub, kMinimum>, ChainBlocks<kSub, kMinimum, 1, kGroupsOfOne>,
    ChainBlocks<kSub, kMinimum, 2, kGroupsOfTwo>, ChainBlocks<kSub, kMinimum, 4, kGroupsOfFour>};

// out[(k - begin) * stride + r] = W[row r, k] for k in [begin, end), of a plain type.
using UnpackFunction = void (*)(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out,
                                std::size_t stride);

// One of the two is null.
struct Format {
  UnpackFunction unpack = nullptr;
  ReadFunction read = nullptr;
  NumberFormat numbers{};
  const NumberKernels* kernels = nullptr;

  bool quantised() const { return read != nullptr; }
  // out[(k - begin) * stride + r] = W[row r, k] for k in [begin, end), at most one chain.
  void Unpack(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out,
              std::size_t stride) const {
    if (!quantised()) return unpack(rows, begin, end, out, stride);
    WordBlock block;
    read(rows, begin, end, block);
    kernels->widen(block, end - begin, numbers, out, stride);
  }
};

template <class Type>
Format Quantised() {
  return {nullptr, ReadBlock<Type>, {Type::kMask, Type::kOffset}, &kNumberKernels<Type::kSub, Type::kMinimum>};
}

inline Format FormatOf(DType type) {
  switch (type) {
    case DType::f32:
      return {UnpackF32};
    case DType::f16:
      return {UnpackF16};
    case DType::bf16:
      return {UnpackBF16};
    case DType::f64:
      return {UnpackF64};
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

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
