// Logarithm, hyperbolic tangent, error function and logistic function on vectors, beside Exp of simd-inl.h: one formula
// each, the same operations in the same order on every target, tails and special values included (law 3). Polynomials
// are minimax fits with float32 coefficients (tools/minimax.py). Included once per target, after simd-inl.h.

#if defined(REGARD_KERNELS_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_MATH_INL_H
#undef REGARD_KERNELS_MATH_INL_H
#else
#define REGARD_KERNELS_MATH_INL_H
#endif

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// tanh x. |x| < 0.625: x + x^3 P(x^2), relative error of P's fit 2^-27; beyond: 1 - 2 / (e^2|x| + 1), where the
// quotient is below 0.46, so that its rounding weighs little. Exactly +-1 from |x| = 9.02 on; -0 stays -0; NaN for NaN.
template <class D, class Vec = hn::Vec<D>>
HWY_INLINE Vec Tanh(D d, Vec x) {
  const Vec one = hn::Set(d, 1.0f);
  const Vec a = hn::Abs(x);
  const Vec z = hn::Mul(a, a);
  Vec p = hn::Set(d, -0.005692296661436558f);
  p = Fma(p, z, hn::Set(d, 0.02062816731631756f));
  p = Fma(p, z, hn::Set(d, -0.05373651534318924f));
  p = Fma(p, z, hn::Set(d, 0.13331405818462372f));
  p = Fma(p, z, hn::Set(d, -0.3333328068256378f));
  const Vec near = Fma(hn::Mul(p, z), a, a);
  const Vec e = Exp(d, hn::Add(a, a));
  const Vec far = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), near, far), x);
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
