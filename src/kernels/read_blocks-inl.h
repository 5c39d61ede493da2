// The block types of 32 numbers as words (words-inl.h). Layouts and formulas: ggml-quants.c, dequantize_row_*;
// dequantize.cc says them plainly.

#if defined(REGARD_KERNELS_READ_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_READ_BLOCKS_INL_H
#undef REGARD_KERNELS_READ_BLOCKS_INL_H
#else
#define REGARD_KERNELS_READ_BLOCKS_INL_H
#endif

#include "kernels/iq4_values.h"
#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

template <int kBits>
HWY_INLINE Words ShiftedRight(const Words& w) {
  return {hn::ShiftRight<kBits>(w.w0), hn::ShiftRight<kBits>(w.w1), hn::ShiftRight<kBits>(w.w2),
          hn::ShiftRight<kBits>(w.w3)};
}
template <int kBits>
HWY_INLINE Words ShiftedLeft(const Words& w) {
  return {hn::ShiftLeft<kBits>(w.w0), hn::ShiftLeft<kBits>(w.w1), hn::ShiftLeft<kBits>(w.w2),
          hn::ShiftLeft<kBits>(w.w3)};
}
HWY_INLINE VU LowNibbles(VU w) { return hn::And(w, Bits(0x0f0f0f0fu)); }

// {f16 d; u8 qs[16]}
struct Q4_0 {
  static constexpr int kBlock = 32, kBytes = 18, kStep = 32, kSub = 32;
  static constexpr std::uint32_t kMask = 0xf, kOffset = 8;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot& to) {
    const std::int64_t at = k / kBlock * kBytes;
    to.SetScale(0, HalfLow(Turn(rows, at).w0));
    const Words q = TurnBytes(rows, at + 2);
    to.SetNumbers(0, q);
    to.SetNumbers(1, ShiftedRight<4>(q));
  }
};

// {f16 d, m; u8 qs[16]}
struct Q4_1 {
  static constexpr int kBlock = 32, kBytes = 20, kStep = 32, kSub = 32;
  static constexpr std::uint32_t kMask = 0xf, kOffset = 0;
  static constexpr bool kMinimum = true;
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const VU head = Turn(rows, at).w0;
    to.SetScale(0, HalfLow(head));
    to.SetMinimum(0, HalfHigh(head));
    const Words q = TurnBytes(rows, at + 4);
    to.SetNumbers(0, q);
    to.SetNumbers(1, ShiftedRight<4>(q));
  }
};

// The four nibbles of the low 16 bits (the others are 0) -> the low nibbles of the four bytes.
HWY_INLINE VU SpreadNibbles(VU w) {
  const VU bytes = hn::And(hn::Or(w, hn::ShiftLeft<8>(w)), Bits(0x00ff00ffu));
  return LowNibbles(hn::Or(bytes, hn::ShiftLeft<4>(bytes)));
}
// Four words of four bits, and bit j of each nibble of `fifth` on top of word j.
HWY_INLINE Words WithFifthBits(const Words& q, VU fifth) {
  const VU bit = Bits(0x10101010u);
  return {hn::Or(LowNibbles(q.w0), hn::And(hn::ShiftLeft<4>(fifth), bit)),
          hn::Or(LowNibbles(q.w1), hn::And(hn::ShiftLeft<3>(fifth), bit)),
          hn::Or(LowNibbles(q.w2), hn::And(hn::ShiftLeft<2>(fifth), bit)),
          hn::Or(LowNibbles(q.w3), hn::And(hn::ShiftLeft<1>(fifth), bit))};
}
// 16 bytes of nibbles and the 32 bits of qh, bit n for number n, -> 32 numbers of 5 bits.
HWY_INLINE void SetFiveBits(const Words& q, VU qh, const WordSlot& to) {
  to.SetNumbers(0, WithFifthBits(q, SpreadNibbles(hn::And(qh, Bits(0xffff)))));
  to.SetNumbers(1, WithFifthBits(ShiftedRight<4>(q), SpreadNibbles(hn::ShiftRight<16>(qh))));
}

// {f16 d; u32 qh; u8 qs[16]}
struct Q5_0 {
  static constexpr int kBlock = 32, kBytes = 22, kStep = 32, kSub = 32;
  static constexpr std::uint32_t kMask = 0x1f, kOffset = 16;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot& to) {
    const std::int64_t at = k / kBlock * kBytes;
    to.SetScale(0, HalfLow(Turn(rows, at).w0));
    SetFiveBits(TurnBytes(rows, at + 6), Turn(rows, at + 2).w0, to);
  }
};

// {f16 d, m; u32 qh; u8 qs[16]}
struct Q5_1 {
  static constexpr int kBlock = 32, kBytes = 24, kStep = 32, kSub = 32;
  static constexpr std::uint32_t kMask = 0x1f, kOffset = 0;
  static constexpr bool kMinimum = true;
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const Words head = Turn(rows, at);
    to.SetScale(0, HalfLow(head.w0));
    to.SetMinimum(0, HalfHigh(head.w0));
    SetFiveBits(TurnBytes(rows, at + 8), head.w1, to);
  }
};

// {f16 d; i8 qs[32]}. A signed byte with its top bit flipped is the number + 128.
struct Q8_0 {
  static constexpr int kBlock = 32, kBytes = 34, kStep = 32, kSub = 32;
  static constexpr std::uint32_t kMask = 0xff, kOffset = 128;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot& to) {
    const std::int64_t at = k / kBlock * kBytes;
    to.SetScale(0, HalfLow(Turn(rows, at).w0));
    for (std::ptrdiff_t part = 0; part < 2; ++part) {
      const VU top = Bits(0x80808080u);
      const Words q = TurnBytes(rows, at + 2 + 16 * part);
      to.SetNumbers(part, {hn::Xor(q.w0, top), hn::Xor(q.w1, top), hn::Xor(q.w2, top), hn::Xor(q.w3, top)});
    }
  }
};

// The four low bits of each byte -> the iq4 level + 128.
HWY_INLINE VU Iq4Lookup(VU w) {
  const hn::Repartition<std::uint8_t, U32> d8;
  const auto levels = hn::LoadDup128(d8, kIq4LevelsPlus128);
  return hn::BitCast(U32(), hn::TableLookupBytes(levels, hn::BitCast(d8, LowNibbles(w))));
}
HWY_INLINE Words Iq4Lookup(const Words& q) {
  return {Iq4Lookup(q.w0), Iq4Lookup(q.w1), Iq4Lookup(q.w2), Iq4Lookup(q.w3)};
}

// {f16 d; u8 qs[16]}
struct IQ4_NL {
  static constexpr int kBlock = 32, kBytes = 18, kStep = 32, kSub = 32;
  static constexpr std::uint32_t kMask = 0xff, kOffset = 128;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot& to) {
    const std::int64_t at = k / kBlock * kBytes;
    to.SetScale(0, HalfLow(Turn(rows, at).w0));
    const Words q = TurnBytes(rows, at + 2);
    to.SetNumbers(0, Iq4Lookup(q));
    to.SetNumbers(1, Iq4Lookup(ShiftedRight<4>(q)));
  }
};

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
