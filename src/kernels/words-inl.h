// Quantised weights, turned but not yet widened. Every quantised type is read (read_*-inl.h, one function a type) as
// words of four bytes, byte i of word j the number q of k = 4 j + i, with a scale and maybe a minimum for every kSub
// numbers:
//   w = scale * q + minimum       or       w = scale * (q - kOffset)
// and everything else here is the same for all types. Of each 16 numbers, number 4 i + j is byte i of word j
// (TurnBytes), so that one byte position, with its mask and scale, serves four k in a row.
//
// A byte is masked out where it stands and converted as it is, 2^(8 i) times too large; the scale carries 2^(-8 i). A
// scale has at most 18 significant bits and a number so many that their product is exact in f32 wherever the power of
// two sits, so one fused multiply-add rounds once, to the same bits as a product followed by a sum.

#if defined(REGARD_KERNELS_WORDS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_WORDS_INL_H
#undef REGARD_KERNELS_WORDS_INL_H
#else
#define REGARD_KERNELS_WORDS_INL_H
#endif

#include <utility>

#include "kernels/turn-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// What a type says of itself, and the read function it has:
//   struct Type {
//     static constexpr int kBlock, kBytes;       // numbers and bytes of a stored block
//     static constexpr int kStep;                // numbers read at a time, 32 or 128
//     static constexpr int kSub;                 // numbers with the same scale, 16 or 32
//     static constexpr std::uint32_t kMask;      // the bits of a byte that are the number
//     static constexpr bool kMinimum;            // has minima (else kOffset)
//     static constexpr std::uint32_t kOffset;
//     static void Read(const RowPointers& rows, std::int64_t k, Unit<Type>& unit);  // k: a multiple of kStep
//   };

// kStep numbers of kLanes rows.
template <class Type>
struct Unit {
  alignas(64) std::uint32_t word[Type::kStep / 4][kLanes];
  alignas(64) float scale[Type::kStep / Type::kSub][4][kLanes];  // for each byte of a word
  alignas(64) float minimum[Type::kStep / Type::kSub][kLanes];

  // The 16 numbers from 16 * place on.
  HWY_INLINE void SetNumbers(std::size_t place, const Words& w) {
    const U32 d;
    hn::Store(w.w0, d, word[4 * place]);
    hn::Store(w.w1, d, word[4 * place + 1]);
    hn::Store(w.w2, d, word[4 * place + 2]);
    hn::Store(w.w3, d, word[4 * place + 3]);
  }
  HWY_INLINE void SetScale(std::size_t sub, V s) {
    const F32 d;
    hn::Store(s, d, scale[sub][0]);
    hn::Store(hn::Mul(s, hn::Set(d, 0x1p-8f)), d, scale[sub][1]);
    hn::Store(hn::Mul(s, hn::Set(d, 0x1p-16f)), d, scale[sub][2]);
    hn::Store(hn::Mul(s, hn::Set(d, 0x1p-24f)), d, scale[sub][3]);
  }
  HWY_INLINE void SetMinimum(std::size_t sub, V m) { hn::Store(m, F32(), minimum[sub]); }
  HWY_INLINE V Minimum(std::size_t sub) const {
    if constexpr (Type::kMinimum) return hn::Load(F32(), minimum[sub]);
    return hn::Zero(F32());  // never used
  }
};

// The numbers in byte i of each word, widened, and what that takes.
template <class Type>
struct ByteOf {
  VU mask, offset;  // at byte i

  HWY_INLINE ByteOf() : mask(Bits(Type::kMask)), offset(Bits(Type::kOffset)) {}
  HWY_INLINE void Next() {
    mask = hn::ShiftLeft<8>(mask);
    if constexpr (!Type::kMinimum) offset = hn::ShiftLeft<8>(offset);
  }
  HWY_INLINE V Weights(const std::uint32_t* word, V scale, V minimum) const {
    const VU number = hn::And(hn::Load(U32(), word), mask);
    if constexpr (Type::kMinimum) {
      return Fma(SignedToFloat(number), scale, minimum);
    } else {
      return hn::Mul(SignedToFloat(hn::Sub(number, offset)), scale);
    }
  }
};

// The same address, of which the compiler no longer knows that it is the same. Without it, it would copy what a loop
// reads again and again to the stack, one store and one load more for every load.
template <class T>
HWY_INLINE const T* Reread(const T* p) {
  asm volatile("" : "+r"(p));
  return p;
}

// out[(k - begin) * stride + r] = W[row r, k] for k in [begin, end), a multiple of kStep.
template <class Type>
void UnpackUnits(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out, std::size_t stride) {
  const F32 d;
  const RowPointers pointers(rows);
  Unit<Type> unit;
  for (std::int64_t k = begin; k < end; k += Type::kStep) {
    Type::Read(pointers, k, unit);
    for (std::size_t place = 0; place < Type::kStep / 16; ++place) {
      const std::size_t sub = place * 16 / Type::kSub;
      const V minimum = unit.Minimum(sub);
      ByteOf<Type> byte;
      for (std::size_t i = 0; i < 4; ++i, out += 4 * stride, byte.Next()) {
        const V scale = hn::Load(d, unit.scale[sub][i]);
        const Unit<Type>* u = Reread(&unit);
        hn::Store(byte.Weights(u->word[4 * place], scale, minimum), d, out);
        hn::Store(byte.Weights(u->word[4 * place + 1], scale, minimum), d, out + stride);
        hn::Store(byte.Weights(u->word[4 * place + 2], scale, minimum), d, out + 2 * stride);
        hn::Store(byte.Weights(u->word[4 * place + 3], scale, minimum), d, out + 3 * stride);
      }
    }
  }
}

// Units in one chain.
template <class Type>
inline constexpr std::int64_t kReads = kChain / Type::kStep;

template <std::size_t kValue>
using Index = std::integral_constant<std::size_t, kValue>;

// Adds kStep numbers of each of kGroups groups of kLanes rows to their chains; group g's are units[g * kReads].
template <class Type, std::size_t kRows, std::size_t kGroups, std::size_t... kGroup, std::size_t... kRow>
HWY_INLINE void ChainUnits(const Unit<Type>* units, const float* x, std::ptrdiff_t x_stride, V (&sum)[kRows][kGroups],
                           std::index_sequence<kGroup...>, std::index_sequence<kRow...>) {
  const F32 d;
  for (std::size_t place = 0; place < Type::kStep / 16; ++place) {
    const std::size_t sub = place * 16 / Type::kSub;
    const V minimum[kGroups] = {units[kGroup * kReads<Type>].Minimum(sub)...};
    ByteOf<Type> byte;
    for (std::size_t i = 0; i < 4; ++i, x += 4, byte.Next()) {
      const Unit<Type>* u = Reread(units);
      const V scale[kGroups] = {hn::Load(d, u[kGroup * kReads<Type>].scale[sub][i])...};
      const auto number = [&]<std::size_t kJ>(Index<kJ>) HWY_ATTR {
        const V w[kGroups] = {
            byte.Weights(u[kGroup * kReads<Type>].word[4 * place + kJ], scale[kGroup], minimum[kGroup])...};
        const auto row = [&]<std::size_t kR>(Index<kR>) HWY_ATTR {
          const V broadcast =
              hn::Set(d, x[static_cast<std::ptrdiff_t>(kR) * x_stride + static_cast<std::ptrdiff_t>(kJ)]);
          ((sum[kR][kGroup] = Fma(w[kGroup], broadcast, sum[kR][kGroup])), ...);
        };
        (row(Index<kRow>()), ...);
      };
      number(Index<0>());
      number(Index<1>());
      number(Index<2>());
      number(Index<3>());
    }
  }
}

// chain[r, n] = the chain over k in [begin, end), at most one block, of weight row n and of x's row r, which starts at
// k = begin. For few rows of x, where weights are used too seldom to be worth unpacking to memory.
// rows: kGroups * kLanes of them; ahead: see Prefetch; chain: [kRows, kGroups * kLanes].
template <class Type, std::size_t kRows, std::size_t kGroups, std::size_t... kIndex>
HWY_INLINE void ChainBlockOver(const std::byte* const* rows, std::int64_t begin, std::int64_t end, const float* x,
                               std::ptrdiff_t x_stride, std::ptrdiff_t ahead, float* chain,
                               std::index_sequence<kIndex...>) {
  const F32 d;
  // Every index to the sums is a constant, so that they live in registers.
  V sum[kRows][kGroups];
  ((sum[kIndex / kGroups][kIndex % kGroups] = hn::Zero(d)), ...);
  Unit<Type> units[kGroups * kReads<Type>];
  const std::int64_t reads = (end - begin) / Type::kStep;
  for (std::size_t g = 0; g < kGroups; ++g) {
    const RowPointers pointers(rows + g * kLanes);
    Prefetch(rows + g * kLanes, kLanes, ahead, begin / Type::kBlock * Type::kBytes, end * Type::kBytes / Type::kBlock);
    for (std::int64_t i = 0; i < reads; ++i)
      Type::Read(pointers, begin + i * Type::kStep, units[static_cast<std::int64_t>(g) * kReads<Type> + i]);
  }
  for (std::int64_t i = 0; i < reads; ++i)
    ChainUnits<Type>(units + i, x + i * Type::kStep, x_stride, sum, std::make_index_sequence<kGroups>(),
                     std::make_index_sequence<kRows>());
  (hn::Store(sum[kIndex / kGroups][kIndex % kGroups], d, chain + kIndex * kLanes), ...);
}
template <class Type, std::size_t kRows, std::size_t kGroups>
void ChainBlock(const std::byte* const* rows, std::int64_t begin, std::int64_t end, const float* x,
                std::ptrdiff_t x_stride, std::ptrdiff_t ahead, float* chain) {
  ChainBlockOver<Type, kRows, kGroups>(rows, begin, end, x, x_stride, ahead, chain,
                                       std::make_index_sequence<kRows * kGroups>());
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
