#include "kernels/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
#include "hwy/foreach_target.h"
#include "kernels/channels-inl.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// What is taken off every x before exp: the largest x, NaN not counted (the sum finds those), or 0 where nothing is
// above -inf, so that -inf - -inf is never formed. A maximum is exact, so its order does not matter.
float Shift(const float* x, std::int64_t n) {
  const F32 d;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  V largest = hn::Set(d, kLowest);
  ForVectors(n, [&](std::int64_t c, std::int64_t lanes) {
    largest = MaxSecond(LoadChannels(d, x + c, lanes, kLowest), largest);
  });
  HWY_ALIGN float s[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(largest, d, s);
  float shift = s[0];
  for (std::size_t i = 1; i < hn::Lanes(d); ++i) shift = s[i] > shift ? s[i] : shift;
  return shift == kLowest ? 0.0f : shift;
}

// sum of e^(x - shift); the terms too unless `terms` is null (it may be x).
float SumOfExp(const float* x, float shift, std::int64_t n, float* terms) {
  const F32 d;
  const V shift_v = hn::Set(d, shift);
  return SumChannels(n, [&](V partial, std::int64_t c, std::int64_t lanes) {
    const V e = Exp(d, hn::Sub(LoadChannels(d, x + c, lanes, -std::numeric_limits<float>::infinity()), shift_v));
    if (terms != nullptr) StoreChannels(e, d, terms + c, lanes);
    return hn::Add(partial, e);
  });
}

// The logarithm of one number, as every lane of Log makes it.
float LogOfOne(float x) {
  const F32 d;
  return hn::GetLane(Log(d, hn::Set(d, x)));
}

void SoftmaxRow(const float* x, float* p, std::int64_t n) {
  const F32 d;
  const float sum = SumOfExp(x, Shift(x, n), n, p);
  if (sum == 0) return;  // nothing above -inf: all terms are zeros already
  const V sum_v = hn::Set(d, sum);
  ForVectors(n, [&](std::int64_t c, std::int64_t lanes) {
    StoreChannels(hn::Div(LoadChannels(d, p + c, lanes), sum_v), d, p + c, lanes);
  });
}

void LogSumExpRow(const float* x, std::int64_t n, float* out) {
  const float shift = Shift(x, n);
  if (shift == std::numeric_limits<float>::infinity()) {
    // e^(inf - inf) would say NaN: the answer is +inf unless there is a NaN as well
    for (std::int64_t i = 0; i < n; ++i) {
      if (std::isnan(x[i])) return void(*out = x[i]);
    }
    return void(*out = shift);
  }
  *out = shift + LogOfOne(SumOfExp(x, shift, n, nullptr));
}

void LogSoftmaxRow(const float* x, float* lp, std::int64_t n) {
  const F32 d;
  const float shift = Shift(x, n);
  const float sum = SumOfExp(x, shift, n, nullptr);
  // log 0 = -inf, and -inf - -inf is not a number: where nothing is above -inf, take nothing off
  const V log_sum = hn::Set(d, sum == 0 ? 0.0f : LogOfOne(sum));
  const V shift_v = hn::Set(d, shift);
  ForVectors(n, [&](std::int64_t c, std::int64_t lanes) {
    const V v = hn::Sub(hn::Sub(LoadChannels(d, x + c, lanes), shift_v), log_sum);
    StoreChannels(v, d, lp + c, lanes);
  });
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(SoftmaxRow);
HWY_EXPORT(LogSumExpRow);
HWY_EXPORT(LogSoftmaxRow);

}  // namespace

float log_sum_exp(const float* x, std::int64_t n) {
  float result;
  HWY_DYNAMIC_DISPATCH(LogSumExpRow)(x, n, &result);
  return result;
}

void softmax(const float* x, float* p, std::int64_t n) { HWY_DYNAMIC_DISPATCH(SoftmaxRow)(x, p, n); }

void log_softmax(const float* x, float* lp, std::int64_t n) { HWY_DYNAMIC_DISPATCH(LogSoftmaxRow)(x, lp, n); }

}  // namespace regard
#endif
