// The block types of 256 numbers with scales of scales, as words (words-inl.h), 128 numbers at a time. Layouts and
// formulas: ggml-quants.c, dequantize_row_*; dequantize.cc says them plainly. d has 11 significant bits, a scale at
// most 7 more, so d * scale is exact.

#if defined(REGARD_KERNELS_READ_SUPERBLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_READ_SUPERBLOCKS_INL_H
#undef REGARD_KERNELS_READ_SUPERBLOCKS_INL_H
#else
#define REGARD_KERNELS_READ_SUPERBLOCKS_INL_H
#endif

#include "kernels/read_blocks-inl.h"
#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// Byte kByte of each word, as an unsigned or as a signed number.
template <int kByte>
HWY_INLINE V UnsignedByte(VU w) {
  return SignedToFloat(hn::And(hn::ShiftRight<8 * kByte>(w), Bits(0xff)));
}
template <int kByte>
HWY_INLINE V SignedByte(VU w) {
  return hn::ConvertTo(F32(), hn::ShiftRight<24>(hn::BitCast(I32(), hn::ShiftLeft<24 - 8 * kByte>(w))));
}
HWY_INLINE VU HighNibbles(VU w) { return LowNibbles(hn::ShiftRight<4>(w)); }
// (a & kMaskA) | (b & kMaskB)
template <std::uint32_t kMaskA, std::uint32_t kMaskB>
HWY_INLINE Words Joined(const Words& a, const Words& b) {
  const auto join = [](VU x, VU y) HWY_ATTR { return hn::Or(hn::And(x, Bits(kMaskA)), hn::And(y, Bits(kMaskB))); };
  return {join(a.w0, b.w0), join(a.w1, b.w1), join(a.w2, b.w2), join(a.w3, b.w3)};
}
// Where in its superblock k is: 0 or 1 for the first or second 128.
HWY_INLINE int HalfOf(std::int64_t k) { return static_cast<int>(k / 128 % 2); }
// Four bytes, one for each 32 or 16 numbers, `shift` bits further on in the second half.
template <int kShift>
HWY_INLINE VU OfHalf(VU w, int half) {
  return half == 0 ? w : hn::ShiftRight<kShift>(w);
}

// {u8 scales[16]: 4 bits of scale, 4 of minimum; u8 qs[64]; f16 d, dmin}
struct Q2_K {
  static constexpr int kBlock = 256, kBytes = 84, kStep = 128;
  static constexpr NumberFormat kFormat{.sub_bits = 4, .minimum = true, .nibbles = true, .halves = false};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const int half = HalfOf(k);
    const VU head = Turn(rows, at + 68).w3;
    const V d = HalfLow(head), minus_dmin = hn::Neg(HalfHigh(head));
    const Words scales = Turn(rows, at);
    const auto set = [&](std::size_t sub, VU w) HWY_ATTR {
      const VU s = LowNibbles(w), m = HighNibbles(w);
      to.SetScale(sub, hn::Mul(d, UnsignedByte<0>(s)));
      to.SetScale(sub + 1, hn::Mul(d, UnsignedByte<1>(s)));
      to.SetScale(sub + 2, hn::Mul(d, UnsignedByte<2>(s)));
      to.SetScale(sub + 3, hn::Mul(d, UnsignedByte<3>(s)));
      to.SetMinimum(sub, hn::Mul(minus_dmin, UnsignedByte<0>(m)));
      to.SetMinimum(sub + 1, hn::Mul(minus_dmin, UnsignedByte<1>(m)));
      to.SetMinimum(sub + 2, hn::Mul(minus_dmin, UnsignedByte<2>(m)));
      to.SetMinimum(sub + 3, hn::Mul(minus_dmin, UnsignedByte<3>(m)));
    };
    set(0, half == 0 ? scales.w0 : scales.w2);
    set(4, half == 0 ? scales.w1 : scales.w3);
    // The first and the second 16 of each 32.
    const Words q = TurnBytes(rows, at + 16 + 32 * half), q2 = TurnBytes(rows, at + 32 + 32 * half);
    constexpr std::uint32_t kLow = 0x03030303u, kHigh = 0x30303030u;
    to.SetNumbers(0, Joined<kLow, kHigh>(q, ShiftedLeft<4>(q2)));
    to.SetNumbers(1, Joined<kLow, kHigh>(ShiftedRight<2>(q), ShiftedLeft<2>(q2)));
    to.SetNumbers(2, Joined<kLow, kHigh>(ShiftedRight<4>(q), q2));
    to.SetNumbers(3, Joined<kLow, kHigh>(ShiftedRight<6>(q), ShiftedRight<2>(q2)));
  }
};

// {u8 hmask[32]; u8 qs[64]; u8 scales[12]; f16 d}. Scales of 6 bits, minus 32: low four bits in the first eight bytes,
// high two in the last four.
struct Q3_K {
  static constexpr int kBlock = 256, kBytes = 110, kStep = 128;
  static constexpr NumberFormat kFormat{.sub_bits = 4, .minimum = false, .nibbles = true, .halves = false};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const int half = HalfOf(k);
    const V d = HalfHigh(Turn(rows, at + 94).w3), offset = hn::Set(F32(), 32.0f);
    const Words s = Turn(rows, at + 92);  // w1, w2: low bits; w3: high bits
    const VU high = OfHalf<4>(s.w3, half), top = Bits(0x30303030u);
    const auto set = [&](std::size_t sub, VU w) HWY_ATTR {
      to.SetScale(sub, hn::Mul(d, hn::Sub(UnsignedByte<0>(w), offset)));
      to.SetScale(sub + 1, hn::Mul(d, hn::Sub(UnsignedByte<1>(w), offset)));
      to.SetScale(sub + 2, hn::Mul(d, hn::Sub(UnsignedByte<2>(w), offset)));
      to.SetScale(sub + 3, hn::Mul(d, hn::Sub(UnsignedByte<3>(w), offset)));
    };
    set(0, hn::Or(LowNibbles(OfHalf<4>(s.w1, half)), hn::And(hn::ShiftLeft<4>(high), top)));
    set(4, hn::Or(LowNibbles(OfHalf<4>(s.w2, half)), hn::And(hn::ShiftLeft<2>(high), top)));
    // The first and the second 16 of each 32.
    const Words q = TurnBytes(rows, at + 32 + 32 * half), q2 = TurnBytes(rows, at + 48 + 32 * half);
    const Words masks = TurnBytes(rows, at), masks2 = TurnBytes(rows, at + 16);
    const Words h = half == 0 ? masks : ShiftedRight<4>(masks);  // bit j: of the j-th 32
    const Words h2 = half == 0 ? masks2 : ShiftedRight<4>(masks2);
    to.SetNumbers(0, LessFour(q, ShiftedLeft<2>(h), q2, ShiftedLeft<2>(h2)));
    to.SetNumbers(1, LessFour(ShiftedRight<2>(q), ShiftedLeft<1>(h), ShiftedRight<2>(q2), ShiftedLeft<1>(h2)));
    to.SetNumbers(2, LessFour(ShiftedRight<4>(q), h, ShiftedRight<4>(q2), h2));
    to.SetNumbers(3, LessFour(ShiftedRight<6>(q), ShiftedRight<1>(h), ShiftedRight<6>(q2), ShiftedRight<1>(h2)));
  }

 private:
  // Numbers of two bits and a third one from `h`, less 4, as signed nibbles: the first ones low, the second ones high.
  static HWY_INLINE Words LessFour(const Words& q, const Words& h, const Words& q2, const Words& h2) {
    const Words first = BytesLess<4>(Joined<0x03030303u, 0x04040404u>(q, h));
    const Words second = BytesLess<4>(Joined<0x03030303u, 0x04040404u>(q2, h2));
    return Joined<0x0f0f0f0fu, 0xf0f0f0f0u>(first, ShiftedLeft<4>(second));
  }
};

// The head of q4_k and q5_k, {f16 d, dmin; u8 scales[12]}: scale and minimum of 6 bits for each 32 numbers.
HWY_INLINE void SetScalesAndMinima(const RowPointers& rows, std::int64_t at, int half, const WordSlot<true>& to) {
  const Words head = Turn(rows, at);
  const V d = HalfLow(head.w0), minus_dmin = hn::Neg(HalfHigh(head.w0));
  const VU six = Bits(0x3f3f3f3fu), top = Bits(0x30303030u);
  const VU s =
      half == 0 ? hn::And(head.w1, six) : hn::Or(LowNibbles(head.w3), hn::And(hn::ShiftRight<2>(head.w1), top));
  const VU m =
      half == 0 ? hn::And(head.w2, six) : hn::Or(HighNibbles(head.w3), hn::And(hn::ShiftRight<2>(head.w2), top));
  to.SetScale(0, hn::Mul(d, UnsignedByte<0>(s)));
  to.SetScale(1, hn::Mul(d, UnsignedByte<1>(s)));
  to.SetScale(2, hn::Mul(d, UnsignedByte<2>(s)));
  to.SetScale(3, hn::Mul(d, UnsignedByte<3>(s)));
  to.SetMinimum(0, hn::Mul(minus_dmin, UnsignedByte<0>(m)));
  to.SetMinimum(1, hn::Mul(minus_dmin, UnsignedByte<1>(m)));
  to.SetMinimum(2, hn::Mul(minus_dmin, UnsignedByte<2>(m)));
  to.SetMinimum(3, hn::Mul(minus_dmin, UnsignedByte<3>(m)));
}

// {head; u8 qs[128]}: each 32 bytes hold 64 numbers, the low nibbles first.
struct Q4_K {
  static constexpr int kBlock = 256, kBytes = 144, kStep = 128;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = true, .nibbles = true, .halves = false};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const int half = HalfOf(k);
    SetScalesAndMinima(rows, at, half, to);
    constexpr std::uint32_t kLow = 0x0f0f0f0fu, kHigh = 0xf0f0f0f0u;
    for (std::size_t pair = 0; pair < 2; ++pair) {  // of 32 numbers in the low and 32 in the high nibbles
      const std::int64_t first = at + 16 + 64 * half + 32 * static_cast<std::int64_t>(pair);
      const Words q = TurnBytes(rows, first), q2 = TurnBytes(rows, first + 16);
      to.SetNumbers(2 * pair, Joined<kLow, kHigh>(q, ShiftedLeft<4>(q2)));
      to.SetNumbers(2 * pair + 1, Joined<kLow, kHigh>(ShiftedRight<4>(q), q2));
    }
  }
};

// {head; u8 qh[32]; u8 qs[128]}: as q4_k; bit j of qh is the fifth bit of the j-th 32.
struct Q5_K {
  static constexpr int kBlock = 256, kBytes = 176, kStep = 128;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = true, .nibbles = false, .halves = false};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const int half = HalfOf(k);
    SetScalesAndMinima(rows, at, half, to);
    constexpr std::uint32_t kLow = 0x0f0f0f0fu, kHigh = 0x10101010u;
    for (std::size_t part = 0; part < 2; ++part) {
      const Words bits = TurnBytes(rows, at + 16 + 16 * part);
      const Words h = half == 0 ? bits : ShiftedRight<4>(bits);
      const Words q = TurnBytes(rows, at + 48 + 64 * half + 16 * part),
                  q2 = TurnBytes(rows, at + 80 + 64 * half + 16 * part);
      to.SetNumbers(part, Joined<kLow, kHigh>(q, ShiftedLeft<4>(h)));
      to.SetNumbers(part + 2, Joined<kLow, kHigh>(ShiftedRight<4>(q), ShiftedLeft<3>(h)));
      to.SetNumbers(part + 4, Joined<kLow, kHigh>(q2, ShiftedLeft<2>(h)));
      to.SetNumbers(part + 6, Joined<kLow, kHigh>(ShiftedRight<4>(q2), ShiftedLeft<1>(h)));
    }
  }
};

// {u8 ql[128]; u8 qh[64]; i8 scales[16]; f16 d}. Of each 128 numbers: the low nibbles of 64 bytes, then the high ones.
struct Q6_K {
  static constexpr int kBlock = 256, kBytes = 210, kStep = 128;
  static constexpr NumberFormat kFormat{.sub_bits = 4, .minimum = false, .nibbles = false, .halves = false};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const int half = HalfOf(k);
    const V d = HalfHigh(Turn(rows, at + 194).w3);
    const Words scales = Turn(rows, at + 192);
    const auto set = [&](std::size_t sub, VU w) HWY_ATTR {
      to.SetScale(sub, hn::Mul(d, SignedByte<0>(w)));
      to.SetScale(sub + 1, hn::Mul(d, SignedByte<1>(w)));
      to.SetScale(sub + 2, hn::Mul(d, SignedByte<2>(w)));
      to.SetScale(sub + 3, hn::Mul(d, SignedByte<3>(w)));
    };
    set(0, half == 0 ? scales.w0 : scales.w2);
    set(4, half == 0 ? scales.w1 : scales.w3);
    constexpr std::uint32_t kLow = 0x0f0f0f0fu, kHigh = 0x30303030u;
    for (std::size_t part = 0; part < 2; ++part) {
      const Words q = TurnBytes(rows, at + 64 * half + 16 * part),
                  q2 = TurnBytes(rows, at + 64 * half + 32 + 16 * part);
      const Words h = TurnBytes(rows, at + 128 + 32 * half + 16 * part);
      to.SetNumbers(part, BytesLess<32>(Joined<kLow, kHigh>(q, ShiftedLeft<4>(h))));
      to.SetNumbers(part + 2, BytesLess<32>(Joined<kLow, kHigh>(q2, ShiftedLeft<2>(h))));
      to.SetNumbers(part + 4, BytesLess<32>(Joined<kLow, kHigh>(ShiftedRight<4>(q), h)));
      to.SetNumbers(part + 6, BytesLess<32>(Joined<kLow, kHigh>(ShiftedRight<4>(q2), ShiftedRight<2>(h))));
    }
  }
};

// {f16 d; u16 scales_h; u8 scales_l[4]; u8 qs[128]}: a scale of 6 bits, minus 32, for each 32 numbers, those as in
// iq4_nl.
struct IQ4_XS {
  static constexpr int kBlock = 256, kBytes = 136, kStep = 128;
  static constexpr NumberFormat kFormat{.sub_bits = 5, .minimum = false, .nibbles = false, .halves = false};
  static HWY_INLINE void Read(const RowPointers& rows, std::int64_t k, const WordSlot<kFormat.minimum>& to) {
    const std::int64_t at = k / kBlock * kBytes;
    const int half = HalfOf(k);
    const Words head = Turn(rows, at);
    const V d = HalfLow(head.w0), offset = hn::Set(F32(), 32.0f);
    VU low = OfHalf<16>(head.w1, half);                      // 4 bits for each 32
    VU high = OfHalf<8>(hn::ShiftRight<16>(head.w0), half);  // 2 bits for each
    for (std::size_t part = 0; part < 4; ++part) {
      const VU six = hn::Or(hn::And(low, Bits(0xf)), hn::And(hn::ShiftLeft<4>(high), Bits(0x30)));
      to.SetScale(part, hn::Mul(d, hn::Sub(SignedToFloat(six), offset)));
      low = hn::ShiftRight<4>(low);
      high = hn::ShiftRight<2>(high);
      const Words q = TurnBytes(rows, at + 8 + 64 * half + 16 * part);
      to.SetNumbers(2 * part, Iq4Lookup(q));
      to.SetNumbers(2 * part + 1, Iq4Lookup(ShiftedRight<4>(q)));
    }
  }
};

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
