// Every one of the 65536 numbers of each half-width format, and every neighbourhood where a float rounds to one.

#include "tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace regard {
namespace {

struct Format {
  const char* name;
  int mantissa_bits, exponent_bits;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);

  std::uint16_t infinity() const { return static_cast<std::uint16_t>(((1u << exponent_bits) - 1) << mantissa_bits); }
  // IEEE 754-2019 section 3.4, in double, for a finite pattern without sign.
  double value(std::uint32_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> mantissa_bits);
    const double fraction = static_cast<double>(bits & ((1u << mantissa_bits) - 1));
    if (exponent == 0) return std::ldexp(fraction, 1 - bias - mantissa_bits);
    return std::ldexp(std::ldexp(1.0, mantissa_bits) + fraction, exponent - bias - mantissa_bits);
  }
};

const Format kFormats[] = {{"f16", 10, 5, f32_from_f16, f16_from_f32}, {"bf16", 7, 8, f32_from_bf16, bf16_from_f32}};

TEST(Half, EveryNumberWidensToItsValueAndBack) {
  for (const Format& f : kFormats) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto h = static_cast<std::uint16_t>(bits);
      const std::uint32_t magnitude = bits & 0x7fffu;
      const float wide = f.widen(h);
      EXPECT_EQ(std::signbit(wide), bits >> 15 == 1) << f.name << " " << bits;
      if (magnitude > f.infinity()) {
        EXPECT_TRUE(std::isnan(wide)) << f.name << " " << bits;
        EXPECT_GT(f.narrow(wide) & 0x7fffu, f.infinity()) << "NaN must stay NaN: " << f.name << " " << bits;
        EXPECT_EQ(f.narrow(wide) >> 15, bits >> 15);
      } else if (magnitude == f.infinity()) {
        EXPECT_TRUE(std::isinf(wide)) << f.name << " " << bits;
        EXPECT_EQ(f.narrow(wide), h);
      } else {
        EXPECT_EQ(std::fabs(wide), f.value(magnitude)) << f.name << " " << bits;
        EXPECT_EQ(f.narrow(wide), h) << f.name << " " << bits;
      }
    }
  }
}

TEST(Half, BetweenTwoNeighboursTheNearerAndAtTheMiddleTheEvenOne) {
  for (const Format& f : kFormats) {
    for (std::uint16_t h = 0; h < f.infinity(); ++h) {
      const double low = f.value(h);
      // The neighbour of the largest number is what would come next if there were room: from the middle on, infinity.
      const double high =
          h + 1 == f.infinity() ? 2 * low - f.value(static_cast<std::uint32_t>(h - 1)) : f.value(h + 1u);
      const auto middle = static_cast<float>((low + high) / 2);  // exact: one bit more than the format has
      ASSERT_EQ(static_cast<double>(middle), (low + high) / 2);
      const float below = std::nextafter(middle, 0.0f);
      const float above = std::nextafter(middle, std::numeric_limits<float>::infinity());
      const auto up = static_cast<std::uint16_t>(h + 1);
      for (std::uint16_t sign : {std::uint16_t{0}, std::uint16_t{0x8000}}) {
        const float s = sign ? -1.0f : 1.0f;
        ASSERT_EQ(f.narrow(s * below), sign | h) << f.name << " below the middle over " << h;
        ASSERT_EQ(f.narrow(s * middle), sign | (h % 2 == 0 ? h : up)) << f.name << " middle over " << h;
        ASSERT_EQ(f.narrow(s * above), sign | up) << f.name << " above the middle over " << h;
      }
    }
  }
}

TEST(Half, BeyondTheRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(f16_from_f32(65504.0f), 0x7bff);
  EXPECT_EQ(f16_from_f32(65519.996f), 0x7bff);
  EXPECT_EQ(f16_from_f32(65520.0f), 0x7c00);
  EXPECT_EQ(f16_from_f32(-1e30f), 0xfc00);
  EXPECT_EQ(f16_from_f32(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(bf16_from_f32(std::numeric_limits<float>::max()), 0x7f80) << "nearer to 2^128 than to the largest bf16";
  EXPECT_EQ(f16_from_f32(tiny), 0x0000);
  EXPECT_EQ(f16_from_f32(-tiny), 0x8000);
  EXPECT_EQ(bf16_from_f32(-tiny), 0x8000);
  for (const Format& f : kFormats) {
    EXPECT_EQ(f.narrow(infinity), f.infinity());
    EXPECT_EQ(f.narrow(-infinity), 0x8000 | f.infinity());
  }
}

TEST(Half, EveryKindOfFloatNanStaysNan) {
  for (const Format& f : kFormats) {
    for (std::uint32_t sign : {0u, 0x80000000u}) {
      for (std::uint32_t payload = 1; payload < 0x00800000u; payload = payload * 3 + 1) {
        const float nan = std::bit_cast<float>(sign | 0x7f800000u | payload);
        EXPECT_GT(f.narrow(nan) & 0x7fffu, f.infinity()) << f.name << " " << payload;
      }
    }
  }
}

}  // namespace
}  // namespace regard
