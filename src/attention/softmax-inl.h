// Softmax over key blocks: a block's maximum and sum by themselves, and the merging of blocks in order (online softmax,
// Milakov and Gimelshein 2018; Dao et al. 2022).

#if defined(REGARD_ATTENTION_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_SOFTMAX_INL_H
#undef REGARD_ATTENTION_SOFTMAX_INL_H
#else
#define REGARD_ATTENTION_SOFTMAX_INL_H
#endif

#include "attention/score-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// Maximum and sum per lane; (-inf, 0) for a lane that saw nothing.
template <int kVectors>
struct Normaliser {
  V max[kVectors];
  V sum[kVectors];
};

// Exp for x <= 0 or NaN, the same bits with less work.
HWY_INLINE V ExpOfDifference(V x) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const V magic = hn::Set(d, 12582912.0f);
  const V t = Fma(x, hn::Set(d, 1.44269504f), magic);
  const V r = hn::Sub(t, magic);
  V f = Fma(r, hn::Set(d, -0.693145752f), x);
  f = Fma(r, hn::Set(d, -1.42860677e-6f), f);
  V p = hn::Set(d, 0.0013814320554956794f);
  p = Fma(p, f, hn::Set(d, 0.00836885068565607f));
  p = Fma(p, f, hn::Set(d, 0.041668400168418884f));
  p = Fma(p, f, hn::Set(d, 0.1666651964187622f));
  p = Fma(p, f, hn::Set(d, 0.4999999403953552f));
  p = Fma(p, f, hn::Set(d, 1.0f));
  p = Fma(p, f, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, t));
  const V y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElse(hn::Ge(x, hn::Set(d, -87.3365402f)), y, MaxSecond(hn::Zero(d), x));
}

// s becomes p = exp(s - max), keys ascending. NaN scores are passed over by the maximum and reach the sum. kMark:
// masked keys become -0, the mark of the careful chain.
template <int kVectors, bool kMark>
HWY_INLINE Normaliser<kVectors> Exponentiate(int keys, float* HWY_RESTRICT s) {
  constexpr int kWidth = kVectors * kLanes;
  const F32 d;
  const V zero = hn::Zero(d), minus_infinity = hn::Set(d, kMinusInfinity);
  Normaliser<kVectors> block;
#pragma GCC unroll 3
  for (int j = 0; j < kVectors; ++j) block.max[j] = minus_infinity;
  for (int key = 0; key < keys; ++key) {
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j)
      block.max[j] = MaxSecond(hn::Load(d, s + key * kWidth + j * kLanes), block.max[j]);
  }
  V base[kVectors];
#pragma GCC unroll 3
  for (int j = 0; j < kVectors; ++j) {
    block.max[j] = hn::Add(block.max[j], zero);  // +0 and -0 compare equal: the result may not tell which came first
    block.sum[j] = zero;
    base[j] = hn::IfThenElse(hn::Eq(block.max[j], minus_infinity), zero, block.max[j]);
  }
  for (int key = 0; key < keys; ++key) {
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      float* at = s + key * kWidth + j * kLanes;
      const V score = hn::Load(d, at);
      V p = ExpOfDifference(hn::Sub(score, base[j]));
      if constexpr (kMark) p = hn::IfThenElse(hn::Eq(score, minus_infinity), hn::Set(d, -0.0f), p);
      hn::Store(p, d, at);
      block.sum[j] = hn::Add(block.sum[j], p);
    }
  }
  return block;
}

// Merges one block into what came before it and says how the values are to be merged: O = fma(O, before, O_block *
// block). A lane that saw nothing in the block keeps its state: before = 1, block = 0. (sum != 0 also holds for NaN.)
HWY_INLINE void Merge(V block_max, V block_sum, float* HWY_RESTRICT max, float* HWY_RESTRICT sum,
                      float* HWY_RESTRICT before_factor, float* HWY_RESTRICT block_factor) {
  const F32 d;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const V old_max = hn::Load(d, max), old_sum = hn::Load(d, sum);
  const auto saw_nothing = hn::Eq(block_sum, zero);
  const V new_max = MaxSecond(block_max, old_max);
  const V a = hn::IfThenElse(saw_nothing, one, Exp(d, hn::Sub(old_max, new_max)));
  const V b = hn::IfThenElse(saw_nothing, zero, Exp(d, hn::Sub(block_max, new_max)));
  hn::Store(hn::IfThenElse(saw_nothing, old_max, new_max), d, max);
  hn::Store(hn::IfThenElse(saw_nothing, old_sum, Fma(old_sum, a, hn::Mul(block_sum, b))), d, sum);
  hn::Store(a, d, before_factor);
  hn::Store(b, d, block_factor);
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
