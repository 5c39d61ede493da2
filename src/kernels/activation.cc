#include "kernels/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "hwy/foreach_target.h"
#include "kernels/channels-inl.h"
#include "kernels/math-inl.h"
#include "kernels/rows.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

struct Silu {  // x sigmoid(x)
  HWY_INLINE V operator()(F32 d, V x) const { return TimesSigmoid(d, x, x); }
};

struct GeluErf {  // x/2 (1 + erf(x / sqrt 2))
  HWY_INLINE V operator()(F32 d, V x) const {
    const V twice_phi = hn::Add(hn::Set(d, 1.0f), Erf(d, hn::Mul(x, hn::Set(d, 0.707106781f))));
    const V finite = MaxSecond(hn::Set(d, std::numeric_limits<float>::lowest()), x);  // never -inf * 0
    return hn::Mul(hn::Mul(hn::Set(d, 0.5f), finite), twice_phi);
  }
};

struct GeluTanh {  // x/2 (1 + tanh u) = x sigmoid(2u), which does not cancel; u = sqrt(2 / pi) (x + 0.044715 x^3)
  HWY_INLINE V operator()(F32 d, V x) const {
    const V slope = Fma(hn::Mul(x, x), hn::Set(d, 0.0713548163f), hn::Set(d, 1.595769122f));
    return TimesSigmoid(d, x, hn::Mul(x, slope));
  }
};

struct Relu {  // NaN stays
  HWY_INLINE V operator()(F32 d, V x) const { return MaxSecond(hn::Zero(d), x); }
};

// gpt-oss (openai/gpt-oss, torch/model.py, swiglu). NaN stays.
HWY_INLINE void ClampedSwiglu(const float* gate, const float* up, float* y, std::int64_t n) {
  const F32 d;
  const V limit = hn::Set(d, 7.0f);
  const auto at_most = [&](V x) { return hn::Neg(MaxSecond(hn::Neg(limit), hn::Neg(x))); };
  ForVectors(n, [&](std::int64_t c, std::int64_t lanes) {
    const V g = at_most(LoadChannels(d, gate + c, lanes));
    const V u = MaxSecond(hn::Neg(limit), at_most(LoadChannels(d, up + c, lanes)));
    const V swish = TimesSigmoid(d, g, hn::Mul(g, hn::Set(d, 1.702f)));
    StoreChannels(hn::Mul(hn::Add(u, hn::Set(d, 1.0f)), swish), d, y + c, lanes);
  });
}

// y = f(x), or y = f(x) * up.
template <class F>
HWY_INLINE void Map(const float* x, const float* up, float* y, std::int64_t n) {
  const F32 d;
  const F f;
  if (up == nullptr) {
    ForVectors(n, [&](std::int64_t c, std::int64_t lanes) {
      StoreChannels(f(d, LoadChannels(d, x + c, lanes)), d, y + c, lanes);
    });
  } else {
    ForVectors(n, [&](std::int64_t c, std::int64_t lanes) {
      const V factor = LoadChannels(d, up + c, lanes);
      StoreChannels(hn::Mul(f(d, LoadChannels(d, x + c, lanes)), factor), d, y + c, lanes);
    });
  }
}

void ActivateRow(Activation f, const float* x, const float* up, float* y, std::int64_t n) {
  switch (f) {
    case Activation::silu:
      return Map<Silu>(x, up, y, n);
    case Activation::gelu_erf:
      return Map<GeluErf>(x, up, y, n);
    case Activation::gelu_tanh:
      return Map<GeluTanh>(x, up, y, n);
    case Activation::relu:
      return Map<Relu>(x, up, y, n);
    case Activation::clamped_swiglu:
      return ClampedSwiglu(x, up, y, n);
  }
}

void AddRow(const float* x, float* y, std::int64_t n) {
  const F32 d;
  ForVectors(n, [&](std::int64_t c, std::int64_t lanes) {
    StoreChannels(hn::Add(LoadChannels(d, y + c, lanes), LoadChannels(d, x + c, lanes)), d, y + c, lanes);
  });
}

void ScaleRow(float factor, float* y, std::int64_t n) {
  const F32 d;
  const V factor_v = hn::Set(d, factor);
  ForVectors(n, [&](std::int64_t c, std::int64_t lanes) {
    StoreChannels(hn::Mul(LoadChannels(d, y + c, lanes), factor_v), d, y + c, lanes);
  });
}

struct ExpOf {
  HWY_INLINE V operator()(F32 d, V x) const { return Exp(d, x); }
};
struct LogOf {
  HWY_INLINE V operator()(F32 d, V x) const { return Log(d, x); }
};
struct TanhOf {
  HWY_INLINE V operator()(F32 d, V x) const { return Tanh(d, x); }
};
struct ErfOf {
  HWY_INLINE V operator()(F32 d, V x) const { return Erf(d, x); }
};
void ExpRow(const float* x, float* y, std::int64_t n) { Map<ExpOf>(x, nullptr, y, n); }
void LogRow(const float* x, float* y, std::int64_t n) { Map<LogOf>(x, nullptr, y, n); }
void TanhRow(const float* x, float* y, std::int64_t n) { Map<TanhOf>(x, nullptr, y, n); }
void ErfRow(const float* x, float* y, std::int64_t n) { Map<ErfOf>(x, nullptr, y, n); }

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(ActivateRow);
HWY_EXPORT(AddRow);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(ExpRow);
HWY_EXPORT(LogRow);
HWY_EXPORT(TanhRow);
HWY_EXPORT(ErfRow);

// A sum or product of two numbers costs a small part of what an activation does.
constexpr std::int64_t kCheap = 8;

}  // namespace

void activate(Activation f, View<const float, 2> x, View<float, 2> y) {
  require_same_rows("activate", x, y);
  if (f == Activation::clamped_swiglu) throw Error(ErrorCode::bad_input, "activate: clamped_swiglu needs a gate");
  const auto row = HWY_DYNAMIC_DISPATCH(ActivateRow);
  for_row_pieces(x.shape[0], x.shape[1], [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) row(f, x[r].data, nullptr, y[r].data, x.shape[1]);
  });
}

void activate_gated(Activation f, View<const float, 2> gate, View<const float, 2> up, View<float, 2> y) {
  require_same_rows("activate_gated", gate, y);
  require_same_rows("activate_gated", up, y);
  const auto row = HWY_DYNAMIC_DISPATCH(ActivateRow);
  for_row_pieces(y.shape[0], y.shape[1], [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) row(f, gate[r].data, up[r].data, y[r].data, y.shape[1]);
  });
}

void add(View<const float, 2> x, View<float, 2> y) {
  require_same_rows("add", x, y);
  const auto row = HWY_DYNAMIC_DISPATCH(AddRow);
  for_row_pieces(y.shape[0], y.shape[1] / kCheap, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) row(x[r].data, y[r].data, y.shape[1]);
  });
}

void add_bias(const float* bias, View<float, 2> y) {
  require_dense_rows("add_bias", "the output", y);
  if (bias == nullptr) throw Error(ErrorCode::bad_input, "add_bias: no bias");
  const auto row = HWY_DYNAMIC_DISPATCH(AddRow);
  for_row_pieces(y.shape[0], y.shape[1] / kCheap, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) row(bias, y[r].data, y.shape[1]);
  });
}

void scale(float factor, View<float, 2> y) {
  require_dense_rows("scale", "the output", y);
  const auto row = HWY_DYNAMIC_DISPATCH(ScaleRow);
  for_row_pieces(y.shape[0], y.shape[1] / kCheap, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) row(factor, y[r].data, y.shape[1]);
  });
}

void exp(const float* x, float* y, std::int64_t n) { HWY_DYNAMIC_DISPATCH(ExpRow)(x, y, n); }
void log(const float* x, float* y, std::int64_t n) { HWY_DYNAMIC_DISPATCH(LogRow)(x, y, n); }
void tanh(const float* x, float* y, std::int64_t n) { HWY_DYNAMIC_DISPATCH(TanhRow)(x, y, n); }
void erf(const float* x, float* y, std::int64_t n) { HWY_DYNAMIC_DISPATCH(ErfRow)(x, y, n); }

}  // namespace regard
#endif
