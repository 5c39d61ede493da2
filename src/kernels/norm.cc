#include "kernels/norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include "hwy/foreach_target.h"
#include "kernels/channels-inl.h"
#include "kernels/rows.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

void RmsNormRow(const float* x, const float* weight, float eps, float plus, std::int64_t channels, float* y) {
  const F32 d;
  // 1. size
  const V size = hn::Set(d, RootOfMeanSquare(channels, eps, [&](std::int64_t c, std::int64_t lanes) HWY_ATTR {
                           return LoadChannels(d, x + c, lanes);
                         }));
  // 2. scale; the weight last, as the models do. A quotient, not a product with 1 / size, which would round once more
  const V plus_v = hn::Set(d, plus);
  ForVectors(channels, [&](std::int64_t c, std::int64_t lanes) {
    const V w = hn::Add(plus_v, LoadChannels(d, weight + c, lanes));
    StoreChannels(hn::Mul(hn::Div(LoadChannels(d, x + c, lanes), size), w), d, y + c, lanes);
  });
}

void LayerNormRow(const float* x, const float* weight, const float* bias, float eps, std::int64_t channels, float* y) {
  const F32 d;
  const float count = static_cast<float>(channels);
  // 1. mean
  const float sum = SumChannels(channels, [&](V partial, std::int64_t c, std::int64_t lanes) {
    return hn::Add(partial, LoadChannels(d, x + c, lanes));
  });
  const float mean = sum / count;
  const V mean_v = hn::Set(d, mean);
  // 2. variance, about the mean: the mean of squares minus the square of the mean would cancel
  const V deviation = hn::Set(d, RootOfMeanSquare(channels, eps, [&](std::int64_t c, std::int64_t lanes) HWY_ATTR {
                                return hn::Sub(LoadChannels(d, x + c, lanes, mean), mean_v);
                              }));
  // 3. scale and shift
  ForVectors(channels, [&](std::int64_t c, std::int64_t lanes) {
    const V normal = hn::Div(hn::Sub(LoadChannels(d, x + c, lanes), mean_v), deviation);
    const V w = LoadChannels(d, weight + c, lanes);
    const V out = bias == nullptr ? hn::Mul(normal, w) : Fma(normal, w, LoadChannels(d, bias + c, lanes));
    StoreChannels(out, d, y + c, lanes);
  });
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(RmsNormRow);
HWY_EXPORT(LayerNormRow);

void require_norm(const char* operation, View<const float, 2> x, const float* weight, View<float, 2> y) {
  require_same_rows(operation, x, y);
  if (weight == nullptr) throw Error(ErrorCode::bad_input, fmt::format("{}: no weight", operation));
}

}  // namespace

void rms_norm(View<const float, 2> x, const float* weight, float eps, bool weight_plus_one, View<float, 2> y) {
  require_norm("rms_norm", x, weight, y);
  const auto row = HWY_DYNAMIC_DISPATCH(RmsNormRow);
  const std::int64_t channels = x.shape[1];
  const float plus = weight_plus_one ? 1.0f : -0.0f;  // adding -0 leaves every number as it is, -0 too
  for_row_pieces(x.shape[0], channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) row(x[r].data, weight, eps, plus, channels, y[r].data);
  });
}

void layer_norm(View<const float, 2> x, const float* weight, const float* bias, float eps, View<float, 2> y) {
  require_norm("layer_norm", x, weight, y);
  const auto row = HWY_DYNAMIC_DISPATCH(LayerNormRow);
  const std::int64_t channels = x.shape[1];
  for_row_pieces(x.shape[0], channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) row(x[r].data, weight, bias, eps, channels, y[r].data);
  });
}

}  // namespace regard
#endif
