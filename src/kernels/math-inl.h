// Logarithm, hyperbolic tangent, error function and a product with the logistic function on vectors, beside Exp of
// simd-inl.h: one formula each, the same operations in the same order on every target, tails and special values
// included (law 3). Polynomials are minimax fits with float32 coefficients (tools/minimax.py). Included once per
// target, after simd-inl.h.

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

// x sigmoid(t) = x / (1 + e^-t): +-0 where e^-t overflows (t < -88.72), for x = -inf too (the limit, when t goes with
// x). NaN for NaN.
template <class D, class Vec = hn::Vec<D>>
HWY_INLINE Vec TimesSigmoid(D d, Vec x, Vec t) {
  const Vec finite = MaxSecond(hn::Set(d, std::numeric_limits<float>::lowest()), x);  // never -inf / inf
  return hn::Div(finite, hn::Add(hn::Set(d, 1.0f), Exp(d, hn::Neg(t))));
}

// erf x. |x| < 0.921875: x + x P(x^2), relative error of P's fit 2^-30; beyond: 1 - e^(x R(x)), where x R(x) is
// log(erfc x) and e to its power is below 0.2. Exactly +-1 from |x| = 3.92 on; -0 stays -0; NaN for NaN.
template <class D, class Vec = hn::Vec<D>>
HWY_INLINE Vec Erf(D d, Vec x) {
  const Vec a = hn::Abs(x);
  const Vec z = hn::Mul(a, a);
  Vec p = hn::Set(d, 7.99504850874655e-05f);
  p = Fma(p, z, hn::Set(d, -0.0008049514726735651f));
  p = Fma(p, z, hn::Set(d, 0.005192392505705357f));
  p = Fma(p, z, hn::Set(d, -0.026855729520320892f));
  p = Fma(p, z, hn::Set(d, 0.11283625662326813f));
  p = Fma(p, z, hn::Set(d, -0.3761262893676758f));
  p = Fma(p, z, hn::Set(d, 0.12837916612625122f));
  const Vec near = Fma(p, a, a);
  const Vec four = hn::Set(d, 4.0f);
  const Vec t = hn::IfThenElse(hn::Gt(a, four), four, a);  // R was fitted up to 4; NaN stays
  Vec r = hn::Set(d, -1.1302831808279734e-05f);
  r = Fma(r, t, hn::Set(d, 0.0003235255426261574f));
  r = Fma(r, t, hn::Set(d, -0.0036454147193580866f));
  r = Fma(r, t, hn::Set(d, 0.023768354207277298f));
  r = Fma(r, t, hn::Set(d, -0.10624422132968903f));
  r = Fma(r, t, hn::Set(d, -0.6351468563079834f));
  r = Fma(r, t, hn::Set(d, -1.1286495923995972f));
  const Vec far = hn::Sub(hn::Set(d, 1.0f), Exp(d, hn::Mul(r, t)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.921875f)), near, far), x);
}

// Natural logarithm. x = 2^k m with m in [2/3, 4/3), f = m - 1 (exact): k ln 2 + f + f^2 P(f), relative error of P's
// fit 2^-27. Subnormal x are scaled by 2^23 first. -inf for +-0, NaN below 0, +inf for +inf, NaN for NaN.
template <class D, class Vec = hn::Vec<D>>
HWY_INLINE Vec Log(D d, Vec x) {
  const hn::RebindToSigned<D> di;
  const Vec infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto subnormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const auto bits = hn::BitCast(di, hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p23f)), x));
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f2aaaab)));  // 0x3f2aaaab: 2/3
  const Vec k = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(subnormal, hn::Set(d, 23.0f)));
  const Vec f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0f));
  Vec p = hn::Set(d, -0.12492635101079941f);
  p = Fma(p, f, hn::Set(d, 0.14059589803218842f));
  p = Fma(p, f, hn::Set(d, -0.12272990494966507f));
  p = Fma(p, f, hn::Set(d, 0.13989774882793427f));
  p = Fma(p, f, hn::Set(d, -0.16674457490444183f));
  p = Fma(p, f, hn::Set(d, 0.20011432468891144f));
  p = Fma(p, f, hn::Set(d, -0.24999919533729553f));
  p = Fma(p, f, hn::Set(d, 0.33333197236061096f));
  p = Fma(p, f, hn::Set(d, -0.5f));
  Vec y = Fma(k, hn::Set(d, 1.42860677e-6f), hn::Mul(hn::Mul(f, f), p));  // the low part of ln 2, as in Exp
  y = Fma(k, hn::Set(d, 0.693145752f), hn::Add(y, f));
  y = hn::IfThenElse(hn::Lt(x, infinity), y, hn::Add(x, infinity));  // +inf and NaN
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), y);
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
