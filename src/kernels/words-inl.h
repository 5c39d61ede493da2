// Quantised weights, turned but not yet widened. Every quantised type is read (read_*-inl.h, one function a type) as
// words of four bytes, byte i of word j the number q of k = 4 j + i, with a scale and maybe a minimum for every kSub
// numbers:
//   w = scale * q + minimum       or       w = scale * (q - kOffset)
// and everything else here is the same for all types.
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
//     static constexpr int kUnit;                // numbers read at a time, 32 or 128
//     static constexpr int kSub;                 // numbers with the same scale
//     static constexpr std::uint32_t kMask;      // the bits of a byte that are the number
//     static constexpr bool kMinimum;            // has minima (else kOffset)
//     static constexpr std::uint32_t kOffset;
//     static void Read(const std::byte* const* rows, std::int64_t k, Unit<Type>& unit);  // k: a multiple of kUnit
//   };

// kUnit numbers of kLanes rows.
template <class Type>
struct Unit {
  static constexpr int kSubs = Type::kUnit / Type::kSub;
  alignas(64) std::uint32_t word[Type::kUnit / 4][kLanes];
  alignas(64) float scale[kSubs][4][kLanes];  // for each byte of a word
  alignas(64) float minimum[kSubs][kLanes];

  HWY_INLINE void SetWords(int first, const Words& w) {
    const U32 d;
    hn::Store(w.w0, d, word[first]);
    hn::Store(w.w1, d, word[first + 1]);
    hn::Store(w.w2, d, word[first + 2]);
    hn::Store(w.w3, d, word[first + 3]);
  }
  HWY_INLINE void SetScale(int sub, V s) {
    const F32 d;
    hn::Store(s, d, scale[sub][0]);
    hn::Store(hn::Mul(s, hn::Set(d, 0x1p-8f)), d, scale[sub][1]);
    hn::Store(hn::Mul(s, hn::Set(d, 0x1p-16f)), d, scale[sub][2]);
    hn::Store(hn::Mul(s, hn::Set(d, 0x1p-24f)), d, scale[sub][3]);
  }
  HWY_INLINE void SetMinimum(int sub, V m) { hn::Store(m, F32(), minimum[sub]); }

  // The weights of k = 4 j + kByte.
  template <int kByte>
  HWY_INLINE V Weights(int j, int sub) const {
    const F32 d;
    const VU number = hn::And(hn::Load(U32(), word[j]), Bits(Type::kMask << (8 * kByte)));
    const V s = hn::Load(d, scale[sub][kByte]);
    if constexpr (Type::kMinimum) {
      return Fma(SignedToFloat(number), s, hn::Load(d, minimum[sub]));
    } else {
      return hn::Mul(SignedToFloat(hn::Sub(number, Bits(Type::kOffset << (8 * kByte)))), s);
    }
  }
};

// out[(k - begin) * stride + r] = W[row r, k] for k in [begin, end), whole units.
template <class Type>
void UnpackUnits(const std::byte* const* rows, std::int64_t begin, std::int64_t end, float* out, std::size_t stride) {
  const F32 d;
  for (std::int64_t k = begin; k < end; k += Type::kUnit) {
    Unit<Type> unit;
    Type::Read(rows, k, unit);
    for (int j = 0; j < Type::kUnit / 4; ++j, out += 4 * stride) {
      const int sub = j * 4 / Type::kSub;
      hn::Store(unit.template Weights<0>(j, sub), d, out);
      hn::Store(unit.template Weights<1>(j, sub), d, out + stride);
      hn::Store(unit.template Weights<2>(j, sub), d, out + 2 * stride);
      hn::Store(unit.template Weights<3>(j, sub), d, out + 3 * stride);
    }
  }
}

template <std::size_t kValue>
using Index = std::integral_constant<std::size_t, kValue>;

// Adds one unit of each of kGroups groups of kLanes rows to their chains: for few rows of x, where the weights are used
// too seldom to be worth unpacking to memory. chain: [kRows, kGroups * kLanes].
template <class Type, std::size_t kRows, std::size_t kGroups, std::size_t... kGroup, std::size_t... kRow>
HWY_INLINE void ChainUnits(const Unit<Type>* units, const float* x, std::ptrdiff_t x_stride, float* chain,
                           std::index_sequence<kGroup...>, std::index_sequence<kRow...>) {
  const F32 d;
  V sum[kRows][kGroups];
  const auto each_row = [&](const auto& body) HWY_ATTR { (body(Index<kRow>()), ...); };
  each_row([&]<std::size_t kR>(Index<kR>)
               HWY_ATTR { ((sum[kR][kGroup] = hn::Load(d, chain + (kR * kGroups + kGroup) * kLanes)), ...); });
  for (int j = 0; j < Type::kUnit / 4; ++j, x += 4) {
    const int sub = j * 4 / Type::kSub;
    const auto byte = [&]<std::size_t kByte>(Index<kByte>) HWY_ATTR {
      const V w[kGroups] = {units[kGroup].template Weights<kByte>(j, sub)...};
      each_row([&]<std::size_t kR>(Index<kR>) HWY_ATTR {
        const V broadcast = hn::Set(d, x[static_cast<std::ptrdiff_t>(kR) * x_stride + kByte]);
        ((sum[kR][kGroup] = Fma(w[kGroup], broadcast, sum[kR][kGroup])), ...);
      });
    };
    byte(Index<0>());
    byte(Index<1>());
    byte(Index<2>());
    byte(Index<3>());
  }
  each_row([&]<std::size_t kR>(Index<kR>)
               HWY_ATTR { (hn::Store(sum[kR][kGroup], d, chain + (kR * kGroups + kGroup) * kLanes), ...); });
}

// chain[r, n] = the chain over k in [begin, end), whole units of at most one block, of weight row n and of x's row r,
// which starts at k = begin.
// rows: kGroups * kLanes of them; chain: [kRows, kGroups * kLanes].
template <class Type, std::size_t kRows, std::size_t kGroups>
void ChainBlock(const std::byte* const* rows, std::int64_t begin, std::int64_t end, const float* x,
                std::ptrdiff_t x_stride, float* chain) {
  for (std::size_t i = 0; i < kRows * kGroups * kLanes; i += kLanes) hn::Store(hn::Zero(F32()), F32(), chain + i);
  Unit<Type> units[kGroups];
  for (std::int64_t k = begin; k < end; k += Type::kUnit) {
    for (std::size_t g = 0; g < kGroups; ++g) Type::Read(rows + g * kLanes, k, units[g]);
    ChainUnits<Type, kRows, kGroups>(units, x + (k - begin), x_stride, chain, std::make_index_sequence<kGroups>(),
                                     std::make_index_sequence<kRows>());
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
