// Quantised weights, turned but not yet widened. Every quantised type is read (read_*-inl.h, one function a type) as
// words of four bytes, each a number q, with a scale and maybe a minimum for every 16 or 32 numbers:
//   w = scale * q + minimum       or       w = scale * (q - offset)
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

// The numbers of one chain of kLanes rows: up to kChain of them.
struct WordBlock {
  alignas(64) std::uint32_t word[kChain / 4][kLanes];
  alignas(64) float scale[kChain / 16][4][kLanes];  // [sub]: of 16 or 32 numbers; for each byte of a word
  alignas(64) float minimum[kChain / 16][kLanes];
};

// Where a type's read function puts some of them.
struct WordSlot {
  std::uint32_t (*word)[kLanes];
  float (*scale)[4][kLanes];
  float (*minimum)[kLanes];

  // The 16 numbers from 16 * place on.
  HWY_INLINE void SetNumbers(std::size_t place, const Words& w) const {
    const U32 d;
    hn::Store(w.w0, d, word[4 * place]);
    hn::Store(w.w1, d, word[4 * place + 1]);
    hn::Store(w.w2, d, word[4 * place + 2]);
    hn::Store(w.w3, d, word[4 * place + 3]);
  }
  HWY_INLINE void SetScale(std::size_t sub, V s) const {
    const F32 d;
    hn::Store(s, d, scale[sub][0]);
    hn::Store(hn::Mul(s, hn::Set(d, 0x1p-8f)), d, scale[sub][1]);
    hn::Store(hn::Mul(s, hn::Set(d, 0x1p-16f)), d, scale[sub][2]);
    hn::Store(hn::Mul(s, hn::Set(d, 0x1p-24f)), d, scale[sub][3]);
  }
  HWY_INLINE void SetMinimum(std::size_t sub, V m) const { hn::Store(m, F32(), minimum[sub]); }
};

// Reads k in [begin, end), at most one chain, of kLanes rows. A type says of itself:
//   struct Type {
//     static constexpr int kBlock, kBytes;   // numbers and bytes of a stored block
//     static constexpr int kStep;            // numbers read at a time, 32 or 128
//     static constexpr int kSub;             // numbers with the same scale, 16 or 32
//     static constexpr bool kMinimum;        // has minima, else an offset
//     static constexpr std::uint32_t kMask;  // the bits of a byte that are the number
//     static constexpr std::uint32_t kOffset;
//     static void Read(const RowPointers& rows, std::int64_t k, const WordSlot& to);  // k: a multiple of kStep
//   };
template <class Type>
void ReadBlock(const std::byte* const* rows, std::int64_t begin, std::int64_t end, WordBlock& block) {
  const RowPointers pointers(rows);
  WordSlot to{block.word, block.scale, block.minimum};
  for (std::int64_t k = begin; k < end; k += Type::kStep) {
    Type::Read(pointers, k, to);
    to.word += Type::kStep / 4;
    to.scale += Type::kStep / Type::kSub;
    to.minimum += Type::kStep / Type::kSub;
  }
}
using ReadFunction = void (*)(const std::byte* const* rows, std::int64_t begin, std::int64_t end, WordBlock& block);

// What is the same for all numbers of a type.
struct NumberFormat {
  std::uint32_t mask, offset;
};

// The numbers in byte i of each word, widened.
template <bool kMinimum>
class ByteOf {
 public:
  explicit HWY_INLINE ByteOf(NumberFormat format) : mask_(Bits(format.mask)), offset_(Bits(format.offset)) {}
  HWY_INLINE void Next() {
    mask_ = hn::ShiftLeft<8>(mask_);
    if constexpr (!kMinimum) offset_ = hn::ShiftLeft<8>(offset_);
  }
  HWY_INLINE V Weights(const std::uint32_t* word, V scale, V minimum) const {
    const VU number = hn::And(hn::Load(U32(), word), mask_);
    if constexpr (kMinimum) return Fma(SignedToFloat(number), scale, minimum);
    return hn::Mul(SignedToFloat(hn::Sub(number, offset_)), scale);
  }
  static HWY_INLINE V Minimum(const float* minimum) {
    if constexpr (kMinimum) return hn::Load(F32(), minimum);
    return hn::Zero(F32());  // never used
  }

 private:
  VU mask_, offset_;  // at byte i
};

// The same address, of which the compiler no longer knows that it is the same. Without it, it would copy what a loop
// reads again and again to the stack, one store and one load more for every load.
template <class T>
HWY_INLINE const T* Reread(const T* p) {
  asm volatile("" : "+r"(p));
  return p;
}

// out[k * stride + r] = number k of row r, widened, for k in [0, count).
template <int kSub, bool kMinimum>
void WidenBlock(const WordBlock& block, std::int64_t count, NumberFormat format, float* out, std::size_t stride) {
  const F32 d;
  for (std::int64_t k = 0; k < count; k += 16) {
    const V minimum = ByteOf<kMinimum>::Minimum(block.minimum[k / kSub]);
    ByteOf<kMinimum> byte(format);
    for (std::size_t i = 0; i < 4; ++i, out += 4 * stride, byte.Next()) {
      const WordBlock* b = Reread(&block);
      const V scale = hn::Load(d, b->scale[k / kSub][i]);
      const auto* word = b->word + k / 4;
      hn::Store(byte.Weights(word[0], scale, minimum), d, out);
      hn::Store(byte.Weights(word[1], scale, minimum), d, out + stride);
      hn::Store(byte.Weights(word[2], scale, minimum), d, out + 2 * stride);
      hn::Store(byte.Weights(word[3], scale, minimum), d, out + 3 * stride);
    }
  }
}
using WidenFunction = void (*)(const WordBlock& block, std::int64_t count, NumberFormat format, float* out,
                               std::size_t stride);

template <std::size_t kValue>
using Index = std::integral_constant<std::size_t, kValue>;

template <int kSub, bool kMinimum, std::size_t... kRow, std::size_t... kGroup>
HWY_INLINE void ChainOver(const WordBlock* blocks, std::int64_t count, NumberFormat format, const float* x,
                          std::ptrdiff_t x_stride, float* chain, std::index_sequence<kRow...>,
                          std::index_sequence<kGroup...>) {
  const F32 d;
  constexpr std::size_t kRows = sizeof...(kRow), kGroups = sizeof...(kGroup);
  // Every index to the sums is a constant, so that they live in registers.
  V sum[kRows][kGroups];
  const auto each_row = [&](const auto& body) HWY_ATTR { (body(Index<kRow>()), ...); };
  each_row([&]<std::size_t kR>(Index<kR>) HWY_ATTR { ((sum[kR][kGroup] = hn::Zero(d)), ...); });
  for (std::int64_t k = 0; k < count; k += 16) {
    const V minimum[kGroups] = {ByteOf<kMinimum>::Minimum(blocks[kGroup].minimum[k / kSub])...};
    ByteOf<kMinimum> byte(format);
    for (std::size_t i = 0; i < 4; ++i, x += 4, byte.Next()) {
      const WordBlock* b = Reread(blocks);
      const V scale[kGroups] = {hn::Load(d, b[kGroup].scale[k / kSub][i])...};
      const auto number = [&]<std::size_t kJ>(Index<kJ>) HWY_ATTR {
        const V w[kGroups] = {
            byte.Weights(b[kGroup].word[k / 4 + static_cast<std::int64_t>(kJ)], scale[kGroup], minimum[kGroup])...};
        each_row([&]<std::size_t kR>(Index<kR>) HWY_ATTR {
          const V broadcast =
              hn::Set(d, x[static_cast<std::ptrdiff_t>(kR) * x_stride + static_cast<std::ptrdiff_t>(kJ)]);
          ((sum[kR][kGroup] = Fma(w[kGroup], broadcast, sum[kR][kGroup])), ...);
        });
      };
      number(Index<0>());
      number(Index<1>());
      number(Index<2>());
      number(Index<3>());
    }
  }
  each_row([&]<std::size_t kR>(Index<kR>)
               HWY_ATTR { (hn::Store(sum[kR][kGroup], d, chain + (kR * kGroups + kGroup) * kLanes), ...); });
}

// chain[r, n] = the chain over k in [0, count) of the numbers of weight row n and of x's row r. For few rows of x,
// where weights are used too seldom to be worth widening to memory. blocks: kGroups; chain: [kRows, kGroups * kLanes].
template <int kSub, bool kMinimum, std::size_t kRows, std::size_t kGroups>
void ChainBlocks(const WordBlock* blocks, std::int64_t count, NumberFormat format, const float* x,
                 std::ptrdiff_t x_stride, float* chain) {
  ChainOver<kSub, kMinimum>(blocks, count, format, x, x_stride, chain, std::make_index_sequence<kRows>(),
                            std::make_index_sequence<kGroups>());
}
using ChainFunction = void (*)(const WordBlock* blocks, std::int64_t count, NumberFormat format, const float* x,
                               std::ptrdiff_t x_stride, float* chain);

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
