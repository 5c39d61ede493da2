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

// x becomes e^x for x <= 0 or NaN: Exp with less work, number for number. Several vectors step by step, because the
// steps of one depend on each other.
template <int kCount>
HWY_INLINE void ExpOfDifferences(V (&x)[kCount]) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  constexpr float kLowest = -87.3365402f;
  V t[kCount], f[kCount], p[kCount];
#define REGARD_EACH _Pragma("GCC unroll 8") for (int i = 0; i < kCount; ++i)
  REGARD_EACH t[i] = Fma(x[i], hn::Set(d, 1.44269504f), hn::Set(d, 12582912.0f));
  REGARD_EACH p[i] = hn::Sub(t[i], hn::Set(d, 12582912.0f));
  REGARD_EACH f[i] = Fma(p[i], hn::Set(d, -0.693145752f), x[i]);
  REGARD_EACH f[i] = Fma(p[i], hn::Set(d, -1.42860677e-6f), f[i]);
  REGARD_EACH p[i] = Fma(hn::Set(d, 0.0013814320554956794f), f[i], hn::Set(d, 0.00836885068565607f));
  REGARD_EACH p[i] = Fma(p[i], f[i], hn::Set(d, 0.041668400168418884f));
  REGARD_EACH p[i] = Fma(p[i], f[i], hn::Set(d, 0.1666651964187622f));
  REGARD_EACH p[i] = Fma(p[i], f[i], hn::Set(d, 0.4999999403953552f));
  REGARD_EACH p[i] = Fma(p[i], f[i], hn::Set(d, 1.0f));
  REGARD_EACH p[i] = Fma(p[i], f[i], hn::Set(d, 1.0f));
#if HWY_TARGET == HWY_AVX3
  // p[i] * 2^r, and 0 where x[i] is below: the same numbers with two operations less. NaN is not below.
  REGARD_EACH x[i] = V{_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x[i].raw, _mm512_set1_ps(kLowest), _CMP_NLT_UQ),
                                              p[i].raw, hn::Sub(t[i], hn::Set(d, 12582912.0f)).raw)};
#else
  REGARD_EACH p[i] = hn::BitCast(d, hn::Add(hn::BitCast(di, p[i]), hn::ShiftLeft<23>(hn::BitCast(di, t[i]))));
  REGARD_EACH x[i] = hn::IfThenElse(hn::Ge(x[i], hn::Set(d, kLowest)), p[i], MaxSecond(hn::Zero(d), x[i]));
#endif
#undef REGARD_EACH
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
    float* at = s + key * kWidth;
    V p[kVectors];
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) p[j] = hn::Sub(hn::Load(d, at + j * kLanes), base[j]);
    ExpOfDifferences(p);
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      if constexpr (kMark) {
        p[j] = hn::IfThenElse(hn::Eq(hn::Load(d, at + j * kLanes), minus_infinity), hn::Set(d, -0.0f), p[j]);
      }
      hn::Store(p[j], d, at + j * kLanes);
      block.sum[j] = hn::Add(block.sum[j], p[j]);
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
