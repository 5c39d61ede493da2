#include "kernels/rotary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rotary.cc"
#include "hwy/foreach_target.h"
#include "kernels/channels-inl.h"
#include "kernels/rows.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

// a' = a cos - b sin, b' = b cos + a sin
HWY_INLINE void Turn(V& a, V& b, V cosine, V sine) {
  const V turned = Fma(a, cosine, hn::Neg(hn::Mul(b, sine)));
  b = Fma(b, cosine, hn::Mul(a, sine));
  a = turned;
}

// Pairs (i, i + pairs) of one head.
void RotateHalf(float* x, const float* cosines, const float* sines, std::int64_t pairs) {
  const F32 d;
  ForVectors(pairs, [&](std::int64_t i, std::int64_t lanes) {
    V a = LoadChannels(d, x + i, lanes);
    V b = LoadChannels(d, x + pairs + i, lanes);
    Turn(a, b, LoadChannels(d, cosines + i, lanes), LoadChannels(d, sines + i, lanes));
    StoreChannels(a, d, x + i, lanes);
    StoreChannels(b, d, x + pairs + i, lanes);
  });
}

// Pairs (2i, 2i + 1) of one head.
void RotateInterleaved(float* x, const float* cosines, const float* sines, std::int64_t pairs) {
  const F32 d;
  ForVectors(pairs, [&](std::int64_t i, std::int64_t lanes) {
    HWY_ALIGN float copy[2 * HWY_MAX_BYTES / sizeof(float)] = {};
    const bool whole = lanes == static_cast<std::int64_t>(hn::Lanes(d));
    float* at = whole ? x + 2 * i : copy;
    if (!whole) std::memcpy(copy, x + 2 * i, static_cast<std::size_t>(2 * lanes) * sizeof(float));
    V a, b;
    hn::LoadInterleaved2(d, at, a, b);
    Turn(a, b, LoadChannels(d, cosines + i, lanes), LoadChannels(d, sines + i, lanes));
    hn::StoreInterleaved2(a, b, d, at);
    if (!whole) std::memcpy(x + 2 * i, copy, static_cast<std::size_t>(2 * lanes) * sizeof(float));
  });
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(RotateHalf);
HWY_EXPORT(RotateInterleaved);

// A cosine and a sine in double cost about as much as this many elements of a row kernel.
constexpr std::int64_t kCostOfAngle = 32;

}  // namespace

RotaryTable::RotaryTable(const RotaryConfig& config, std::int64_t length)
    : config_(config), frequencies_(rotary_frequencies(config, length)) {}

void RotaryTable::make_row(std::int64_t position, float* cosines, float* sines) const {
  for (std::size_t i = 0; i < frequencies_.inverse.size(); ++i) {
    const double angle = static_cast<double>(position) * frequencies_.inverse[i];
    cosines[i] = static_cast<float>(std::cos(angle) * frequencies_.attention_factor);
    sines[i] = static_cast<float>(std::sin(angle) * frequencies_.attention_factor);
  }
}

void RotaryTable::grow(std::int64_t rows) {
  if (rows <= rows_) return;
  const std::int64_t pairs = config_.dim / 2;
  cos_.resize(static_cast<std::size_t>(rows * pairs));
  sin_.resize(static_cast<std::size_t>(rows * pairs));
  const std::int64_t old_rows = rows_;
  for_row_pieces(rows - old_rows, pairs * kCostOfAngle, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = old_rows + begin; p < old_rows + end; ++p) make_row(p, &cos_[p * pairs], &sin_[p * pairs]);
  });
  rows_ = rows;
}

void RotaryTable::turn(View<float, 3> x, const std::int64_t* positions, bool back) {
  const std::int64_t rows = x.shape[0], heads = x.shape[1], channels = x.shape[2];
  if (channels < config_.dim) {
    throw Error(ErrorCode::bad_input,
                fmt::format("rotate: {} channels to rotate in heads of {}", config_.dim, channels));
  }
  if (channels > 1 && x.stride[2] != 1) {
    throw Error(ErrorCode::bad_input, fmt::format("rotate: channels are {} apart", x.stride[2]),
                "lay the channels of a head side by side");
  }
  std::int64_t needed = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    if (positions[r] < 0)
      throw Error(ErrorCode::bad_input, fmt::format("rotate: row {} is at position {}", r, positions[r]));
    if (positions[r] < kTableRows) needed = std::max(needed, positions[r] + 1);
  }
  const std::int64_t pairs = config_.dim / 2;
  if (pairs == 0) return;
  grow(needed);
  const auto turn_row =
      config_.pairs == RotaryPairs::half ? HWY_DYNAMIC_DISPATCH(RotateHalf) : HWY_DYNAMIC_DISPATCH(RotateInterleaved);
  for_row_pieces(rows, heads * pairs, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> late;  // cosines and sines of a position that the table does not hold
    std::vector<float> minus(static_cast<std::size_t>(back ? pairs : 0));
    for (std::int64_t r = begin; r < end; ++r) {
      const float* cosines;
      const float* sines;
      if (positions[r] < kTableRows) {
        cosines = cos_.data() + positions[r] * pairs;
        sines = sin_.data() + positions[r] * pairs;
      } else {
        late.resize(static_cast<std::size_t>(2 * pairs));
        make_row(positions[r], late.data(), late.data() + pairs);
        cosines = late.data();
        sines = late.data() + pairs;
      }
      if (back) {
        for (std::int64_t i = 0; i < pairs; ++i) minus[i] = -sines[i];
        sines = minus.data();
      }
      for (std::int64_t h = 0; h < heads; ++h) turn_row(&x(r, h, 0), cosines, sines, pairs);
    }
  });
}

}  // namespace regard
#endif
