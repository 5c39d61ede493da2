// Vector primitives that every dispatched file shares. Included once per target, inside foreach_target; no include
// guard in the usual sense (Highway's toggle instead).
//
// A dispatched file looks like this:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/norm.cc"       // itself
//   #include "hwy/foreach_target.h"
//   #include "kernels/simd-inl.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace regard::HWY_NAMESPACE { ... functions of this target ... }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace regard { HWY_EXPORT(Function); void function(...) { HWY_DYNAMIC_DISPATCH(Function)(...); } }
//   #endif
//
// Targets: the build (root CMakeLists.txt, HWY_DISABLED_TARGETS) leaves AVX3, AVX2 and EMU128.
// EMU128's MulAdd is not fused, so kernels call Fma, never MulAdd, and all targets give the same bits.

#ifndef REGARD_KERNELS_FIRST_TARGET
#define REGARD_KERNELS_FIRST_TARGET
#include "kernels/target.h"
namespace regard {
// Links target.cc into every program with kernels and lets it read REGARD_TARGET before main.
[[maybe_unused]] static const bool kFirstTargetChosen = choose_first_target();
}  // namespace regard
#endif

#if defined(REGARD_KERNELS_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_SIMD_INL_H
#undef REGARD_KERNELS_SIMD_INL_H
#else
#define REGARD_KERNELS_SIMD_INL_H
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Full vectors of f32: 16 lanes with AVX-512, 8 with AVX2, 4 with EMU128.
using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;

// a * b + c, rounded once, on every target.
template <class Vec>
HWY_INLINE Vec Fma(Vec a, Vec b, Vec c) {
#if HWY_TARGET == HWY_EMU128
  Vec r;
  for (std::size_t i = 0; i < sizeof(r.raw) / sizeof(r.raw[0]); ++i) r.raw[i] = std::fma(a.raw[i], b.raw[i], c.raw[i]);
  return r;
#else
  return hn::MulAdd(a, b, c);
#endif
}

// c - a * b, rounded once.
template <class Vec>
HWY_INLINE Vec FmaNeg(Vec a, Vec b, Vec c) {
  return Fma(hn::Neg(a), b, c);
}

// a > b ? a : b; the second operand if either is NaN (what x86 maxps does), on every target.
template <class Vec>
HWY_INLINE Vec MaxSecond(Vec a, Vec b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  return hn::Max(a, b);
#else
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
}

// e^x, error below 1 ulp over the whole range; exactly 0 where e^x < 2^-126 (never a subnormal: those cost 100x), +inf
// where it overflows, NaN for NaN. x = r ln 2 + f, |f| <= ln 2 / 2, e^f by a degree-6 minimax polynomial (relative
// error 4e-9), 2^r by adding r to the exponent.
template <class D, class Vec = hn::Vec<D>>
HWY_INLINE Vec Exp(D d, Vec x) {
  const hn::RebindToSigned<D> di;
  const Vec magic =
      hn::Set(d, 12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, kept in the low mantissa bits
  const Vec t = Fma(x, hn::Set(d, 1.44269504f), magic);
  const Vec r = hn::Sub(t, magic);
  Vec f = Fma(r, hn::Set(d, -0.693145752f), x);  // high part of ln 2: r times it is exact
  f = Fma(r, hn::Set(d, -1.42860677e-6f), f);    // low part
  Vec p = hn::Set(d, 0.0013814320554956794f);
  p = Fma(p, f, hn::Set(d, 0.00836885068565607f));
  p = Fma(p, f, hn::Set(d, 0.041668400168418884f));
  p = Fma(p, f, hn::Set(d, 0.1666651964187622f));
  p = Fma(p, f, hn::Set(d, 0.4999999403953552f));
  p = Fma(p, f, hn::Set(d, 1.0f));
  p = Fma(p, f, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, t));
  Vec y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  y = hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3365402f)), y);
  const Vec beyond = hn::Add(x, hn::Set(d, std::numeric_limits<float>::infinity()));  // +inf, or NaN
  return hn::IfThenElse(hn::Le(x, hn::Set(d, 88.7228317f)), y, beyond);               // false for NaN
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
