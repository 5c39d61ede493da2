// The stored types as the dense product sees them: how each is read, and in which form its numbers are then used.

#if defined(REGARD_KERNELS_FORMATS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_FORMATS_INL_H
#undef REGARD_KERNELS_FORMATS_INL_H
#else
#define REGARD_KERNELS_FORMATS_INL_H
#endif

#include <algorithm>

#include "kernels/half_strips-inl.h"
#include "kernels/matmul.h"
#include "kernels/read_blocks-inl.h"
#include "kernels/read_superblocks-inl.h"
#include "tensor/dtype.h"
#include "tensor/error.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// Weight rows taken together, in vectors, for one, two and four rows of x: enough chains to hide the latency of one,
// few enough sums, scales and minima for the registers (16 with AVX2, 32 with AVX-512).
struct ChainGroups {
  std::size_t one, two, four;
};
inline constexpr ChainGroups kNumberGroups = kLanes == 16 ? ChainGroups{4, 4, 4} : ChainGroups{4, 3, 2};
inline constexpr ChainGroups kHalfGroups = kLanes == 16 ? ChainGroups{4, 4, 4} : ChainGroups{6, 6, 3};

// What a form of the product does with numbers that have minima or not, of 4 or 8 bits.
struct NumberKernels {
  WidenFunction widen;
  ChainFunction chain_of_one, chain_of_two, chain_of_four;
};
template <bool kMinimum, bool kNibbles>
inline constexpr NumberKernels kNumberKernels = {
    WidenBlock<kMinimum, kNibbles>, ChainBlocks<kMinimum, kNibbles, 1, kNumberGroups.one>,
    ChainBlocks<kMinimum, kNibbles, 2, kNumberGroups.two>, ChainBlocks<kMinimum, kNibbles, 4, kNumberGroups.four>};

// What it does with plain ones of 16 bits that are packed.
struct HalfKernels {
  WidenHalvesFunction widen;
  ChainHalvesFunction chain_of_one, chain_of_two, chain_of_four;
};
template <class Type>
inline constexpr HalfKernels kHalfKernels = {WidenHalfStrip<Type>, ChainHalves<Type, 1, kHalfGroups.one>,
                                             ChainHalves<Type, 2, kHalfGroups.two>,
                                             ChainHalves<Type, 4, kHalfGroups.four>};

struct Format {
  UnpackFunction unpack = nullptr;      // plain types: rows as they are stored to f32
  ReadFunction read = nullptr;          // types that are packed: rows as they are stored to a strip
  const HalfKernels* halves = nullptr;  // plain types that are packed
  NumberFormat numbers{};               // quantised types
  const NumberKernels* kernels = nullptr;

  bool quantised() const { return unpack == nullptr; }
  // Of `count` numbers of a packed strip, whole blocks of one chain but for the last.
  std::int64_t StripBytes(std::int64_t count) const {
    return quantised() ? numbers.Bytes(count) : count * kStrip * static_cast<std::int64_t>(sizeof(std::uint16_t));
  }
};

template <class Type>
Format Quantised() {
  constexpr NumberFormat kFormat = Type::kFormat;
  return {nullptr, ReadBlock<Type>, nullptr, kFormat, &kNumberKernels<kFormat.minimum, kFormat.nibbles>};
}

inline Format FormatOf(DType type) {
  switch (type) {
    case DType::f32:
      return {UnpackF32};
    case DType::f16:
      return {UnpackF16, ReadHalves, &kHalfKernels<F16>};
    case DType::bf16:
      return {UnpackBF16, ReadHalves, &kHalfKernels<BF16>};
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
    case DType::mxfp4:
      return Quantised<MXFP4>();
  }
  throw Error(ErrorCode::bad_input, "weights of a stored type that does not exist");
}

// Weights as a product is given them.
struct Weights {
  const Matrix& stored;
  const Format& format;
  const std::byte* packed = nullptr;  // the strips of a PackedMatrix, if there is one

  // Packed: where the strip of row n has its number k, row 0 of it; of the last strip past the end.
  const std::byte* Strip(std::int64_t n, std::int64_t k) const {
    n = std::min(n, stored.rows - 1);
    return packed + n / kStrip * format.StripBytes(stored.cols) + format.StripBytes(k);
  }

  // Packed halves: number k of the kLanes rows from row n on, n a multiple of kLanes.
  const std::uint16_t* Halves(std::int64_t n, std::int64_t k) const {
    return reinterpret_cast<const std::uint16_t*>(Strip(n, k)) + n % kStrip;
  }

  // Quantised: numbers [k, k_end) of the kLanes rows from row n on, n a multiple of kLanes and k of kChain. Those of
  // the last rows, past the end. `rows` and `strip` serve weights that are not packed: where the rows are stored, and
  // room for one strip.
  StripBlock Block(std::int64_t n, std::int64_t k, std::int64_t k_end, const std::byte* const* rows,
                   std::byte* strip) const {
    if (packed == nullptr) format.read(rows, k, k_end, strip, n % kStrip);
    return {packed == nullptr ? strip : Strip(n, k), n % kStrip};
  }
};

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
