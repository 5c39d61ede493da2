#include "kernels/gradients.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gradients.cc"
#include "hwy/foreach_target.h"
#include "kernels/channels-inl.h"
#include "kernels/math-inl.h"
#include "kernels/rows.h"
#include "kernels/softmax.h"
#include "tensor/buffer.h"

#ifndef REGARD_KERNELS_GRADIENTS_ONCE
#define REGARD_KERNELS_GRADIENTS_ONCE
namespace regard {
// What a norm took off a row and divided it by.
struct NormOfRow {
  float mean = 0, size = 1;
};
}  // namespace regard
#endif

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// Of a row as norm.cc has it, and the row's gradient. `centred`: LayerNorm; else RMSNorm.
NormOfRow NormBackwardRow(const float* x, const float* weight, float eps, float plus, bool centred, const float* dy,
                          float* dx, std::int64_t channels) {
  const F32 d;
  const float count = static_cast<float>(channels);
  // 1. mean and size, as forwards
  NormOfRow norm;
  if (centred)
    norm.mean =
        SumChannels(channels, [&](V partial, std::int64_t c,
                                  std::int64_t lanes) { return hn::Add(partial, LoadChannels(d, x + c, lanes)); }) /
        count;
  const V mean = hn::Set(d, norm.mean);
  const auto taken_off = [&](std::int64_t c, std::int64_t lanes) {
    return hn::Sub(LoadChannels(d, x + c, lanes, norm.mean), mean);
  };
  norm.size = RootOfMeanSquare(channels, eps, taken_off);
  const V size = hn::Set(d, norm.size), plus_v = hn::Set(d, plus);
  const auto weighted = [&](std::int64_t c, std::int64_t lanes) {
    return hn::Mul(hn::Add(plus_v, LoadChannels(d, weight + c, lanes)), LoadChannels(d, dy + c, lanes));
  };
  // 2. means of g and of g n
  const float along = SumChannels(channels,
                                  [&](V partial, std::int64_t c, std::int64_t lanes) {
                                    return Fma(weighted(c, lanes), hn::Div(taken_off(c, lanes), size), partial);
                                  }) /
                      count;
  const float offset = !centred ? 0 : SumChannels(channels, [&](V partial, std::int64_t c, std::int64_t lanes) {
                                        return hn::Add(partial, weighted(c, lanes));
                                      }) / count;
  // 3. g without its part along n (and along 1)
  const V along_v = hn::Set(d, along), offset_v = hn::Set(d, offset);
  ForVectors(channels, [&](std::int64_t c, std::int64_t lanes) {
    const V n = hn::Div(taken_off(c, lanes), size);
    const V g = hn::Sub(weighted(c, lanes), offset_v);
    StoreChannels(hn::Div(FmaNeg(n, along_v, g), size), d, dx + c, lanes);
  });
  return norm;
}

// sums[c] += sum over the rows of [begin, end), one block, of dy n; or of dy where x is null. Channels [first, last).
void AddColumnBlock(const float* x, std::int64_t x_stride, const NormOfRow* norms, const float* dy,
                    std::int64_t dy_stride, std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last,
                    float* sums) {
  const F32 d;
  ForVectors(last - first, [&](std::int64_t i, std::int64_t lanes) {
    const std::int64_t c = first + i;
    V sum = hn::Zero(d);
    for (std::int64_t r = begin; r < end; ++r) {
      const V g = LoadChannels(d, dy + r * dy_stride + c, lanes);
      if (x == nullptr) {
        sum = hn::Add(sum, g);
        continue;
      }
      const V v = hn::Sub(LoadChannels(d, x + r * x_stride + c, lanes), hn::Set(d, norms[r].mean));
      sum = Fma(g, hn::Div(v, hn::Set(d, norms[r].size)), sum);
    }
    StoreChannels(hn::Add(LoadChannels(d, sums + c, lanes), sum), d, sums + c, lanes);
  });
}

// sigmoid(x) and 1 - sigmoid(x), neither of which cancels.
HWY_INLINE void Sigmoids(F32 d, V x, V& s, V& rest) {
  const V e = Exp(d, hn::Neg(hn::Abs(x)));
  const V large = hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), e)), small = hn::Mul(e, large);
  const auto positive = hn::Ge(x, hn::Zero(d));
  s = hn::IfThenElse(positive, large, small);
  rest = hn::IfThenElse(positive, small, large);
}

// Each gives f(x), and f'(x) as `slope`.
struct SiluSlope {  // f' = s + x s (1 - s)
  HWY_INLINE V operator()(F32 d, V x, V& slope) const {
    V s, rest;
    Sigmoids(d, x, s, rest);
    const V y = hn::Mul(x, s);
    slope = Fma(y, rest, s);
    return y;
  }
};

struct GeluErfSlope {  // f = x Phi(x), f' = Phi(x) + x phi(x)
  HWY_INLINE V operator()(F32 d, V x, V& slope) const {
    const V half = hn::Set(d, 0.5f);
    const V phi = hn::Mul(half, hn::Add(hn::Set(d, 1.0f), Erf(d, hn::Mul(x, hn::Set(d, 0.707106781f)))));
    const V density = hn::Mul(hn::Set(d, 0.398942280f), Exp(d, hn::Neg(hn::Mul(half, hn::Mul(x, x)))));
    slope = Fma(x, density, phi);
    return hn::Mul(x, phi);
  }
};

struct GeluTanhSlope {  // f = x s, s = sigmoid(t), t = x (a + b x^2): f' = s + x s (1 - s) (a + 3 b x^2)
  HWY_INLINE V operator()(F32 d, V x, V& slope) const {
    const V far = hn::Set(d, -16.0f);  // from there on s is 0 or 1, and x^2 of huge numbers would overflow; NaN stays
    const V near = hn::Neg(MaxSecond(far, hn::Neg(MaxSecond(far, x))));
    const V square = hn::Mul(near, near), a = hn::Set(d, 1.595769122f);
    V s, rest;
    Sigmoids(d, hn::Mul(near, Fma(square, hn::Set(d, 0.0713548163f), a)), s, rest);
    const V y = hn::Mul(x, s);
    slope = Fma(hn::Mul(y, rest), Fma(square, hn::Set(d, 0.214064449f), a), s);
    return y;
  }
};

struct ReluSlope {
  HWY_INLINE V operator()(F32 d, V x, V& slope) const {
    slope = hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1.0f));
    return MaxSecond(hn::Zero(d), x);
  }
};

template <class F>
HWY_INLINE void MapBackward(const float* x, const float* up, const float* dy, float* dx, float* dup, std::int64_t n) {
  const F32 d;
  const F f;
  ForVectors(n, [&](std::int64_t c, std::int64_t lanes) {
    V slope;
    const V y = f(d, LoadChannels(d, x + c, lanes), slope);
    V g = LoadChannels(d, dy + c, lanes);
    if (up != nullptr) {
      const V factor = LoadChannels(d, up + c, lanes);
      StoreChannels(hn::Mul(g, y), d, dup + c, lanes);
      g = hn::Mul(g, factor);
    }
    StoreChannels(hn::Mul(g, slope), d, dx + c, lanes);
  });
}

void ActivateBackwardRow(Activation f, const float* x, const float* up, const float* dy, float* dx, float* dup,
                         std::int64_t n) {
  switch (f) {
    case Activation::silu:
      return MapBackward<SiluSlope>(x, up, dy, dx, dup, n);
    case Activation::gelu_erf:
      return MapBackward<GeluErfSlope>(x, up, dy, dx, dup, n);
    case Activation::gelu_tanh:
      return MapBackward<GeluTanhSlope>(x, up, dy, dx, dup, n);
    case Activation::relu:
      return MapBackward<ReluSlope>(x, up, dy, dx, dup, n);
    case Activation::clamped_swiglu:
      return;  // refused before
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(NormBackwardRow);
HWY_EXPORT(AddColumnBlock);
HWY_EXPORT(ActivateBackwardRow);

constexpr std::int64_t kRowBlock = 256;       // of a parameter's sums
constexpr std::int64_t kColumnsPerTask = 64;  // columns are independent: this may change without changing a bit

// sums += column sums of dy n, or of dy where norms is null.
void add_columns(View<const float, 2> x, const NormOfRow* norms, View<const float, 2> dy, float* sums) {
  const std::int64_t rows = dy.shape[0], channels = dy.shape[1];
  const auto block = HWY_DYNAMIC_DISPATCH(AddColumnBlock);
  parallel_for((channels + kColumnsPerTask - 1) / kColumnsPerTask, [&](std::int64_t task, int) {
    const std::int64_t first = task * kColumnsPerTask, last = std::min(channels, first + kColumnsPerTask);
    for (std::int64_t begin = 0; begin < rows; begin += kRowBlock)
      block(norms == nullptr ? nullptr : x.data, x.stride[0], norms, dy.data, dy.stride[0], begin,
            std::min(rows, begin + kRowBlock), first, last, sums);
  });
}

void norm_backward(const char* operation, View<const float, 2> x, const float* weight, float eps, float plus,
                   bool centred, View<const float, 2> dy, View<float, 2> dx, float* dweight, float* dbias) {
  require_same_rows(operation, x, dx);
  require_same_rows(operation, dy, dx);
  if (weight == nullptr) throw Error(ErrorCode::bad_input, fmt::format("{}: no weight", operation));
  const std::int64_t rows = x.shape[0], channels = x.shape[1];
  if (channels == 0) return;
  const auto row = HWY_DYNAMIC_DISPATCH(NormBackwardRow);
  std::vector<NormOfRow> norms(static_cast<std::size_t>(rows));
  // A row's gradient may take the place of dy: what parameters get of dy comes first, and needs the norms.
  Tensor<float, 2> apart;
  View<float, 2> out = dx;
  if (dx.data == dy.data && (dweight != nullptr || dbias != nullptr)) {
    apart = Tensor<float, 2>({rows, channels});
    out = apart.view();
  }
  for_row_pieces(rows, 2 * channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      norms[r] = row(x[r].data, weight, eps, plus, centred, dy[r].data, out[r].data, channels);
  });
  if (dweight != nullptr) add_columns(x, norms.data(), dy, dweight);
  if (dbias != nullptr) add_columns(x, nullptr, dy, dbias);
  if (out.data != dx.data)
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(out[r].data, channels, dx[r].data);
}

void refuse_clamped(Activation f) {
  if (f == Activation::clamped_swiglu)
    throw Error(ErrorCode::bad_input, "the gradient of clamped_swiglu is not known here");
}

}  // namespace

void rms_norm_backward(View<const float, 2> x, const float* weight, float eps, bool weight_plus_one,
                       View<const float, 2> dy, View<float, 2> dx, float* dweight) {
  const float plus = weight_plus_one ? 1.0f : -0.0f;
  norm_backward("rms_norm_backward", x, weight, eps, plus, false, dy, dx, dweight, nullptr);
}

void layer_norm_backward(View<const float, 2> x, const float* weight, float eps, View<const float, 2> dy,
                         View<float, 2> dx, float* dweight, float* dbias) {
  norm_backward("layer_norm_backward", x, weight, eps, -0.0f, true, dy, dx, dweight, dbias);
}

void activate_backward(Activation f, View<const float, 2> x, View<const float, 2> dy, View<float, 2> dx) {
  require_same_rows("activate_backward", x, dx);
  require_same_rows("activate_backward", dy, dx);
  refuse_clamped(f);
  const auto row = HWY_DYNAMIC_DISPATCH(ActivateBackwardRow);
  for_row_pieces(x.shape[0], x.shape[1], [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) row(f, x[r].data, nullptr, dy[r].data, dx[r].data, nullptr, x.shape[1]);
  });
}

void activate_gated_backward(Activation f, View<const float, 2> gate, View<const float, 2> up, View<const float, 2> dy,
                             View<float, 2> dgate, View<float, 2> dup) {
  for (const View<const float, 2>& x : {gate, up, dy}) require_same_rows("activate_gated_backward", x, dgate);
  require_same_rows("activate_gated_backward", dy, dup);
  refuse_clamped(f);
  const auto row = HWY_DYNAMIC_DISPATCH(ActivateBackwardRow);
  for_row_pieces(dy.shape[0], dy.shape[1], [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      row(f, gate[r].data, up[r].data, dy[r].data, dgate[r].data, dup[r].data, dy.shape[1]);
  });
}

void add_column_sums(View<const float, 2> x, float* sums) {
  require_dense_rows("add_column_sums", "the input", x);
  add_columns(x, nullptr, x, sums);
}

void cross_entropy(View<const float, 2> logits, std::span<const std::int32_t> targets, float weight,
                   std::span<float> losses, View<float, 2> dlogits) {
  require_same_rows("cross_entropy", logits, dlogits);
  const std::int64_t rows = logits.shape[0], V = logits.shape[1];
  if (std::ssize(targets) != rows || std::ssize(losses) != rows)
    throw Error(ErrorCode::bad_input,
                fmt::format("cross_entropy: {} rows, {} targets and {} losses", rows, targets.size(), losses.size()));
  for (const std::int32_t target : targets)
    if (target < -1 || target >= V)
      throw Error(ErrorCode::bad_input, fmt::format("cross_entropy: target {} of {} classes", target, V));
  for_row_pieces(rows, V, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> lp(static_cast<std::size_t>(V));
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int32_t target = targets[r];
      float* out = dlogits[r].data;
      if (target < 0) {
        losses[r] = 0;
        std::fill_n(out, V, 0.0f);
        continue;
      }
      log_softmax(logits[r].data, lp.data(), V);
      losses[r] = -lp[target];
      softmax(logits[r].data, out, V);
      // 1 - p of a sure answer would cancel: it is what the others have.
      if (out[target] < 0.5f) {
        out[target] -= 1.0f;
      } else {
        double others = 0;
        for (std::int64_t c = 0; c < V; ++c)
          if (c != target) others += out[c];
        out[target] = -static_cast<float>(others);
      }
      for (std::int64_t c = 0; c < V; ++c) out[c] *= weight;
    }
  });
}

void turn(View<const float, 2> x, View<float, 2> y) {
  const std::int64_t rows = x.shape[0], columns = x.shape[1];
  if (y.shape[0] != columns || y.shape[1] != rows)
    throw Error(ErrorCode::bad_input,
                fmt::format("turn: [{}, {}] does not turn into [{}, {}]", rows, columns, y.shape[0], y.shape[1]));
  constexpr std::int64_t kTile = 16;  // of a cache line of floats
  parallel_for((columns + kTile - 1) / kTile, [&](std::int64_t task, int) {
    const std::int64_t first = task * kTile, last = std::min(columns, first + kTile);
    for (std::int64_t begin = 0; begin < rows; begin += kTile)
      for (std::int64_t c = first; c < last; ++c)
        for (std::int64_t r = begin; r < std::min(rows, begin + kTile); ++r) y(c, r) = x(r, c);
  });
}

}  // namespace regard
#endif
