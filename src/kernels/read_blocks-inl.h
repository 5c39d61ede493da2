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
// Each byte less kLess.
template <std::uint8_t kLess>
HWY_INLINE Words BytesLess(const Words& w) {
  const U32 d;
  const hn::Repartition<std::int8_t, U32> d8;
  const auto less = [&](VU v) HWY_ATTR {
    return hn::BitCast(d, hn::Sub(hn::BitCast(d8, v), hn::Set(d8, static_cast<std::int8_t>(kLess))));
  };
  return {less(w.w0), less(w.w1), less(w.w2), less(w.w3)};
}

// {f16 d; u8 qs[16]}
struct Q4_0 {
  static constexpr int kBlock = 32, kBytes = 18, kStep = 32;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = false, .nibbles = true, .halves = true};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    to.SetHalves(Turn(rows, at).w0);
    const Words q = TurnBytes(rows, at + 2);
    const VU top = Bits(0x88888888u);  // q - 8 as a signed number of 4 bits is q with its top bit flipped
    to.SetNumbers(0, {hn::Xor(q.w0, top), hn::Xor(q.w1, top), hn::Xor(q.w2, top), hn::Xor(q.w3, top)});
  }
};

// {f16 d, m; u8 qs[16]}
struct Q4_1 {
  static constexpr int kBlock = 32, kBytes = 20, kStep = 32;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = true, .nibbles = true, .halves = true};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    to.SetHalves(Turn(rows, at).w0);
    to.SetNumbers(0, TurnBytes(rows, at + 4));
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
// 16 bytes of nibbles and the 32 bits of qh, bit n for number n, -> the two halves of 32 numbers of 5 bits.
HWY_INLINE Words FirstFiveBits(const Words& q, VU qh) {
  return WithFifthBits(q, SpreadNibbles(hn::And(qh, Bits(0xffff))));
}
HWY_INLINE Words SecondFiveBits(const Words& q, VU qh) {
  return WithFifthBits(ShiftedRight<4>(q), SpreadNibbles(hn::ShiftRight<16>(qh)));
}

// {f16 d; u32 qh; u8 qs[16]}
struct Q5_0 {
  static constexpr int kBlock = 32, kBytes = 22, kStep = 32;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = false, .nibbles = false, .halves = true};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    to.SetHalves(Turn(rows, at).w0);
    const Words q = TurnBytes(rows, at + 6);
    const VU qh = Turn(rows, at + 2).w0;
    to.SetNumbers(0, BytesLess<16>(FirstFiveBits(q, qh)));
    to.SetNumbers(1, BytesLess<16>(SecondFiveBits(q, qh)));
  }
};

// {f16 d, m; u32 qh; u8 qs[16]}
struct Q5_1 {
  static constexpr int kBlock = 32, kBytes = 24, kStep = 32;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = true, .nibbles = false, .halves = true};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const Words head = Turn(rows, at);
    to.SetHalves(head.w0);
    const Words q = TurnBytes(rows, at + 8);
    to.SetNumbers(0, FirstFiveBits(q, head.w1));
    to.SetNumbers(1, SecondFiveBits(q, head.w1));
  }
};

// {f16 d; i8 qs[32]}
struct Q8_0 {
  static constexpr int kBlock = 32, kBytes = 34, kStep = 32;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = false, .nibbles = false, .halves = true};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    to.SetHalves(Turn(rows, at).w0);
    to.SetNumbers(0, TurnBytes(rows, at + 2));
    to.SetNumbers(1, TurnBytes(rows, at + 18));
  }
};

// The four low bits of each byte -> one of 16 levels.
HWY_INLINE VU Lookup(const std::int8_t* levels, VU w) {
  const hn::Repartition<std::int8_t, U32> d8;
  return hn::BitCast(U32(), hn::TableLookupBytes(hn::LoadDup128(d8, levels), hn::BitCast(d8, LowNibbles(w))));
}
HWY_INLINE Words Lookup(const std::int8_t* levels, const Words& q) {
  return {Lookup(levels, q.w0), Lookup(levels, q.w1), Lookup(levels, q.w2), Lookup(levels, q.w3)};
}
HWY_INLINE Words Iq4Lookup(const Words& q) { return Lookup(kIq4Levels, q); }

// {f16 d; u8 qs[16]}
struct IQ4_NL {
  static constexpr int kBlock = 32, kBytes = 18, kStep = 32;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = false, .nibbles = false, .halves = true};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    to.SetHalves(Turn(rows, at).w0);
    const Words q = TurnBytes(rows, at + 2);
    to.SetNumbers(0, Iq4Lookup(q));
    to.SetNumbers(1, Iq4Lookup(ShiftedRight<4>(q)));
  }
};

// {u8 e; u8 qs[16]}: the scale is 2^(e - 128). What its exponent field can't say, below 2^-126, counts as 0, and so
// does what the product's own power of two makes of anything below 2^-125: 1e-38 times a number of at most 12.
struct MXFP4 {
  static constexpr int kBlock = 32, kBytes = 17, kStep = 32;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = false, .nibbles = false, .halves = false};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const VU e = hn::And(Turn(rows, at).w0, Bits(0xff));
    to.SetScale(0, hn::BitCast(F32(), hn::ShiftLeft<23>(hn::Sub(hn::Max(e, Bits(1)), Bits(1)))));
    const Words q = TurnBytes(rows, at + 1);
    to.SetNumbers(0, Lookup(kMxfp4Levels, q));
    to.SetNumbers(1, Lookup(kMxfp4Levels, ShiftedRight<4>(q)));
  }
};

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
