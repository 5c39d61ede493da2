// Quantised weights, turned but not yet widened. Every quantised type is read (read_*-inl.h, one function a type) into
// the same form: numbers q of 4 or 8 bits with a scale and maybe a minimum for every 16 or 32 of them,
//   w = scale * q + minimum, q unsigned,       or       w = scale * q, q signed,
// and everything else here is the same for all types.
//
// The form is that of a strip of 16 rows, whatever the target, so that it can be kept (packed.h). A block of one chain
// of k is
//   for each sub-block    scale[16], minimum[16] if there are minima      f16 where the type stores f16, else f32
//   for each 16 (8 bits) or 32 (4 bits) numbers    word[4][16]
// and lane r of everything belongs to row r. Number 4 i + j is byte i of word j; of 4 bits, it is the low half of that
// byte, and number 16 + 4 i + j the high half. So one place in the words serves four k in a row with one mask.
//
// An unsigned number is masked out where it stands and converted as it is, 2^place times too large; a signed one is
// brought to the top of the word, 2^24 or 2^28 times too large. The scale carries the power of two that makes up for
// it. A scale has at most 18 significant bits and a number so many that their product is exact in f32 wherever that
// power sits, so one fused multiply-add rounds once, to the same bits as a product followed by a sum.

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

inline constexpr std::int64_t kStrip = 16;  // rows

// What is the same for all numbers of a type.
struct NumberFormat {
  int sub_bits;  // log2 of how many numbers have the same scale: 4 or 5
  bool minimum;  // q is unsigned and has a minimum, else signed
  bool nibbles;  // q has 4 bits, else 8
  bool halves;   // scale and minimum are f16, else f32

  std::int64_t ScaleBytes() const { return halves ? 2 : 4; }
  std::int64_t SubBytes() const { return kStrip * ScaleBytes() * (minimum ? 2 : 1); }
  std::int64_t HeadBytes(std::int64_t count) const { return (count >> sub_bits) * SubBytes(); }
  // Of `count` numbers of a strip, whole blocks of one chain but for the last.
  std::int64_t Bytes(std::int64_t count) const { return HeadBytes(count) + (count * kStrip >> (nibbles ? 1 : 0)); }
};
inline constexpr std::int64_t kMostBlockBytes = (kChain / 16 * 2 * sizeof(float) + kChain) * kStrip;

// kLanes rows of a block: lane 0 is row `lane` of the strip.
struct StripBlock {
  const std::byte* data;
  std::int64_t lane;
};

// Where a type's read function puts some numbers of kLanes rows.
template <bool kMinimum>
struct WordSlot {
  std::byte* head;  // of the first sub-block
  std::uint32_t* word;

  // Of 8 bits, the 16 numbers from 16 * place on; of 4 bits, the 32 from 32 * place on.
  HWY_INLINE void SetNumbers(std::size_t place, const Words& w) const {
    const U32 d;
    std::uint32_t* to = word + place * 4 * kStrip;
    hn::StoreU(w.w0, d, to);
    hn::StoreU(w.w1, d, to + kStrip);
    hn::StoreU(w.w2, d, to + 2 * kStrip);
    hn::StoreU(w.w3, d, to + 3 * kStrip);
  }
  // The f16 in the low half of each lane; the minimum is that in the high half.
  HWY_INLINE void SetHalves(VU pair) const {
    const hn::Rebind<std::uint16_t, U32> d16;
    auto* to = reinterpret_cast<std::uint16_t*>(head);
    hn::StoreU(hn::TruncateTo(d16, pair), d16, to);
    if constexpr (kMinimum) hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(pair)), d16, to + kStrip);
  }
  HWY_INLINE void SetScale(std::size_t sub, V s) const { hn::StoreU(s, F32(), Sub(sub)); }
  HWY_INLINE void SetMinimum(std::size_t sub, V m) const { hn::StoreU(m, F32(), Sub(sub) + kStrip); }

 private:
  HWY_INLINE float* Sub(std::size_t sub) const {
    return reinterpret_cast<float*>(head) + sub * (kMinimum ? 2 : 1) * kStrip;
  }
};

// Reads k in [begin, end), at most one chain, of kLanes rows, to row `lane` of a block. A type says of itself:
//   struct Type {
//     static constexpr int kBlock, kBytes;   // numbers and bytes of a stored block
//     static constexpr int kStep;            // numbers read at a time, 32 or 128
//     static constexpr NumberFormat kFormat;
//     static void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to);  // k: of kStep
//   };
template <class Type>
void ReadBlock(const std::byte* const* rows, std::int64_t begin, std::int64_t end, std::byte* block,
               std::int64_t lane) {
  constexpr NumberFormat kFormat = Type::kFormat;
  const RowPointers pointers(rows);
  WordSlot<kFormat.minimum> to{block + lane * kFormat.ScaleBytes(),
                               reinterpret_cast<std::uint32_t*>(block + kFormat.HeadBytes(end - begin)) + lane};
  for (std::int64_t k = begin; k < end; k += Type::kStep) {
    Type::Read(pointers, k, to);
    to.head += kFormat.HeadBytes(Type::kStep);
    to.word += Type::kStep / (kFormat.nibbles ? 8 : 4) * kStrip;
  }
}
using ReadFunction = void (*)(const std::byte* const* rows, std::int64_t begin, std::int64_t end, std::byte* block,
                              std::int64_t lane);

// Scales and minima of one chain of kLanes rows, widened.
struct Scales {
  alignas(64) float scale[kChain / 16][kLanes];
  alignas(64) float minimum[kChain / 16][kLanes];
};
template <class Read>
HWY_INLINE void ReadScalesAs(const std::byte* at, std::int64_t subs, const NumberFormat& format, const Read& read,
                             Scales& scales) {
  const F32 d;
  const V factor = hn::Set(d, format.minimum ? 1.0f : format.nibbles ? 0x1p-28f : 0x1p-24f);
  const std::int64_t minimum = format.minimum ? kStrip * format.ScaleBytes() : 0, step = format.SubBytes();
  for (std::int64_t sub = 0; sub < subs; ++sub, at += step) {
    hn::Store(hn::Mul(read(at), factor), d, scales.scale[sub]);
    hn::Store(read(at + minimum), d, scales.minimum[sub]);  // never used where there are none
  }
}
inline void ReadScales(StripBlock block, std::int64_t count, const NumberFormat& format, Scales& scales) {
  const std::byte* at = block.data + block.lane * format.ScaleBytes();
  const std::int64_t subs = count >> format.sub_bits;
  const hn::Rebind<std::uint16_t, F32> d16;
  const auto half = [&](const std::byte* from)
                        HWY_ATTR { return WidenHalves(hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from))); };
  const auto whole = [](const std::byte* from)
                         HWY_ATTR { return hn::LoadU(F32(), reinterpret_cast<const float*>(from)); };
  if (format.halves)
    ReadScalesAs(at, subs, format, half, scales);
  else
    ReadScalesAs(at, subs, format, whole, scales);
}
inline const std::uint32_t* WordsOf(StripBlock block, std::int64_t count, const NumberFormat& format) {
  return reinterpret_cast<const std::uint32_t*>(block.data + format.HeadBytes(count)) + block.lane;
}

template <std::size_t kValue>
using Index = std::integral_constant<std::size_t, kValue>;
template <std::size_t... kI, class Body>
HWY_INLINE void ForEach(std::index_sequence<kI...>, const Body& body) {
  (body(Index<kI>()), ...);
}

// The numbers that stand in one place of the words, four k in a row; there are 4 places for 8 bits and 8 for 4.
template <bool kMinimum, bool kNibbles, std::size_t kPlace>
struct Place {
  static constexpr int kBits = kNibbles ? 4 : 8;
  static constexpr int kShift = static_cast<int>(kPlace % 4 * 8 + kPlace / 4 * 4);
  static constexpr int kToTop = 32 - kBits - kShift;
  static constexpr std::uint32_t kMask = (1u << kBits) - 1;

  // The scale for numbers as Weights converts them.
  static HWY_INLINE V Scale(const float* scale) {
    const V s = hn::Load(F32(), scale);
    if constexpr (!kMinimum || kShift == 0 || kToTop == 0) return s;
    return hn::Mul(s, hn::Set(F32(), 1.0f / static_cast<float>(1u << kShift)));
  }
  static HWY_INLINE V Minimum(const float* minimum) {
    if constexpr (kMinimum) return hn::Load(F32(), minimum);
    return hn::Zero(F32());  // never used
  }
  static HWY_INLINE V Weights(const std::uint32_t* word, V scale, V minimum) {
    const VU w = hn::LoadU(U32(), word);
    if constexpr (kMinimum) {
      // At the top a number would be taken for a negative one.
      const VU number = kToTop == 0 ? hn::ShiftRight<kShift>(w) : hn::And(w, Bits(kMask << kShift));
      return Fma(SignedToFloat(number), scale, minimum);
    } else {
      const VU number = kToTop == 0 ? w : hn::ShiftLeft<kToTop>(w);
      return hn::Mul(SignedToFloat(kShift == 0 ? number : hn::And(number, Bits(kMask << (32 - kBits)))), scale);
    }
  }
};

// Numbers between two of the same place.
template <bool kNibbles>
inline constexpr std::int64_t kUnit = kNibbles ? 32 : 16;
template <bool kNibbles>
using Places = std::make_index_sequence<kNibbles ? 8 : 4>;

// The same address, of which the compiler no longer knows that it is the same. Without it, it would copy what a loop
// reads again and again to the stack, one store and one load more for every load.
template <class T>
HWY_INLINE const T* Reread(const T* p) {
  asm volatile("" : "+r"(p));
  return p;
}

// out[k * stride + r] = number k of row r, widened, for k in [0, count).
template <bool kMinimum, bool kNibbles>
void WidenBlock(const std::uint32_t* words, const Scales& scales, std::int64_t count, int sub_bits, float* out,
                std::size_t stride) {
  const F32 d;
  for (std::int64_t k = 0; k < count; k += kUnit<kNibbles>, words += 4 * kStrip) {
    ForEach(Places<kNibbles>(), [&]<std::size_t kP>(Index<kP>) HWY_ATTR {
      using At = Place<kMinimum, kNibbles, kP>;
      const std::int64_t s = (k + static_cast<std::int64_t>(4 * kP)) >> sub_bits;
      const V scale = At::Scale(scales.scale[s]), minimum = At::Minimum(scales.minimum[s]);
      const std::uint32_t* word = Reread(words);
      for (std::size_t j = 0; j < 4; ++j, out += stride)
        hn::Store(At::Weights(word + j * kStrip, scale, minimum), d, out);
    });
  }
}
using WidenFunction = void (*)(const std::uint32_t* words, const Scales& scales, std::int64_t count, int sub_bits,
                               float* out, std::size_t stride);

// Whether a chain asks for the words that the next panel will read, a line for every line that it reads. Asked for in
// one go before the chain, as AVX2 does, they were waited for: with AVX-512 a third of the time of decoding Gemma 3
// 270M.
inline constexpr bool kAsksInChain = kLanes == 16;

template <bool kMinimum, bool kNibbles, std::size_t... kRow, std::size_t... kGroup>
HWY_INLINE void ChainOver(const std::uint32_t* const* words, const Scales* scales, std::int64_t count, int sub_bits,
                          const float* x, std::ptrdiff_t x_stride, std::ptrdiff_t ahead, float* chain,
                          std::index_sequence<kRow...> rows, std::index_sequence<kGroup...>) {
  const F32 d;
  constexpr std::size_t kRows = sizeof...(kRow), kGroups = sizeof...(kGroup);
  // Every index to the sums is a constant, so that they live in registers.
  V sum[kRows][kGroups];
  ForEach(rows, [&]<std::size_t kR>(Index<kR>) HWY_ATTR { ((sum[kR][kGroup] = hn::Zero(d)), ...); });
  const std::uint32_t* word[kGroups] = {words[kGroup]...};
  for (std::int64_t k = 0; k < count; k += kUnit<kNibbles>) {
    ForEach(Places<kNibbles>(), [&]<std::size_t kP>(Index<kP>) HWY_ATTR {
      using At = Place<kMinimum, kNibbles, kP>;
      const Scales* at = Reread(scales);
      const std::int64_t s = (k + static_cast<std::int64_t>(4 * kP)) >> sub_bits;
      const V scale[kGroups] = {At::Scale(at[kGroup].scale[s])...};
      const V minimum[kGroups] = {At::Minimum(at[kGroup].minimum[s])...};
      ((word[kGroup] = Reread(word[kGroup])), ...);
      ForEach(std::make_index_sequence<4>(), [&]<std::size_t kJ>(Index<kJ>) HWY_ATTR {
        if constexpr (kP == 0 && kAsksInChain) (__builtin_prefetch(word[kGroup] + kJ * kStrip + ahead, 0, 2), ...);
        if constexpr (kRows == 1) {  // one weight at a time, which takes the fewest registers
          const V x_k = hn::Set(d, x[4 * kP + kJ]);
          ((sum[0][kGroup] =
                Fma(At::Weights(word[kGroup] + kJ * kStrip, scale[kGroup], minimum[kGroup]), x_k, sum[0][kGroup])),
           ...);
        } else {
          const V w[kGroups] = {At::Weights(word[kGroup] + kJ * kStrip, scale[kGroup], minimum[kGroup])...};
          ForEach(rows, [&]<std::size_t kR>(Index<kR>) HWY_ATTR {
            const V x_k = hn::Set(d, x[static_cast<std::ptrdiff_t>(kR) * x_stride + 4 * kP + kJ]);
            ((sum[kR][kGroup] = Fma(w[kGroup], x_k, sum[kR][kGroup])), ...);
          });
        }
      });
    });
    x += kUnit<kNibbles>;
    ((word[kGroup] += 4 * kStrip), ...);
  }
  ForEach(rows, [&]<std::size_t kR>(Index<kR>)
                    HWY_ATTR { (hn::Store(sum[kR][kGroup], d, chain + (kR * kGroups + kGroup) * kLanes), ...); });
}

// chain[r, n] = the chain over k in [0, count) of the numbers of weight row n and of x's row r. For few rows of x,
// where weights are used too seldom to be worth widening to memory. words and scales: kGroups; ahead: from a word to
// the one in its place in the next panel; chain: [kRows, kGroups * kLanes].
template <bool kMinimum, bool kNibbles, std::size_t kRows, std::size_t kGroups>
void ChainBlocks(const std::uint32_t* const* words, const Scales* scales, std::int64_t count, int sub_bits,
                 const float* x, std::ptrdiff_t x_stride, std::ptrdiff_t ahead, float* chain) {
  ChainOver<kMinimum, kNibbles>(words, scales, count, sub_bits, x, x_stride, ahead, chain,
                                std::make_index_sequence<kRows>(), std::make_index_sequence<kGroups>());
}
using ChainFunction = void (*)(const std::uint32_t* const* words, const Scales* scales, std::int64_t count,
                               int sub_bits, const float* x, std::ptrdiff_t x_stride, std::ptrdiff_t ahead,
                               float* chain);

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
