#include "kernels/dequantize.h"

#include <cmath>
#include <cstring>

#include "kernels/iq4_values.h"
#include "tensor/error.h"
#include "tensor/half.h"

namespace regard {
namespace {

using Byte = std::uint8_t;

template <class T>
T read(const Byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
float half(const Byte* at) { return f32_from_f16(read<std::uint16_t>(at)); }

// The functions below widen one block each. b: the block's bytes; y: its numbers.

// {f16 d; u8 qs[16]}: (q - 8) d; number j in the low, j + 16 in the high half of byte j.
void q4_0(const Byte* b, float* y) {
  const float d = half(b);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>((b[2 + j] & 15) - 8);
    y[j + 16] = d * static_cast<float>((b[2 + j] >> 4) - 8);
  }
}

// {f16 d, m; u8 qs[16]}: q d + m.
void q4_1(const Byte* b, float* y) {
  const float d = half(b), m = half(b + 2);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(b[4 + j] & 15) + m;
    y[j + 16] = d * static_cast<float>(b[4 + j] >> 4) + m;
  }
}

// {f16 d; u32 qh; u8 qs[16]}: (q - 16) d; bit j of qh is the fifth bit of number j.
void q5_0(const Byte* b, float* y) {
  const float d = half(b);
  const std::uint32_t high = read<std::uint32_t>(b + 2);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(static_cast<int>((b[6 + j] & 15) | (high >> j & 1) << 4) - 16);
    y[j + 16] = d * static_cast<float>(static_cast<int>((b[6 + j] >> 4) | (high >> (j + 16) & 1) << 4) - 16);
  }
}

// {f16 d, m; u32 qh; u8 qs[16]}: q d + m.
void q5_1(const Byte* b, float* y) {
  const float d = half(b), m = half(b + 2);
  const std::uint32_t high = read<std::uint32_t>(b + 4);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>((b[8 + j] & 15) | (high >> j & 1) << 4) + m;
    y[j + 16] = d * static_cast<float>((b[8 + j] >> 4) | (high >> (j + 16) & 1) << 4) + m;
  }
}

// {f16 d; i8 qs[32]}: q d.
void q8_0(const Byte* b, float* y) {
  const float d = half(b);
  for (int j = 0; j < 32; ++j) y[j] = d * static_cast<float>(static_cast<std::int8_t>(b[2 + j]));
}

// {u8 scales[16]; u8 qs[64]; f16 d, dmin}: (d s) q - dmin m for each 16, s and m the halves of a byte of scales. Each
// 32 bytes of qs hold 128 numbers: the 32 in their two lowest bits first.
void q2_k(const Byte* b, float* y) {
  const float d = half(b + 80), dmin = half(b + 82);
  for (int i = 0; i < 256; ++i) {
    const int s = b[i / 16];
    const int q = b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    y[i] = d * static_cast<float>(s & 15) * static_cast<float>(q) - dmin * static_cast<float>(s >> 4);
  }
}

// {u8 hmask[32]; u8 qs[64]; u8 scales[12]; f16 d}: d (s - 32) q for each 16; qs as in q2_k, less 4 where the bit of
// hmask (bit j for the j-th 32 numbers) is clear. The 6 bits of s: 4 in a half of bytes 0 .. 7, 2 in bytes 8 .. 11.
void q3_k(const Byte* b, float* y) {
  const float d = half(b + 108);
  const Byte* scales = b + 96;
  for (int i = 0; i < 256; ++i) {
    const int j = i / 16;
    const int s = (scales[j % 8] >> (j / 8 * 4) & 15) | (scales[8 + j % 4] >> (j / 4 * 2) & 3) << 4;
    const int low = b[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const int q = low - ((b[i % 32] >> (i / 32) & 1) != 0 ? 0 : 4);
    y[i] = d * static_cast<float>(s - 32) * static_cast<float>(q);
  }
}

// The twelve bytes of q4_k and q5_k: a scale and a minimum of 6 bits for each 32 numbers.
struct ScaleAndMinimum {
  int scale, minimum;
};
ScaleAndMinimum scale_and_minimum(const Byte* s, int j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4};
}

// {f16 d, dmin; u8 scales[12]; u8 qs[128]}: (d s) q - dmin m; each 32 bytes hold 64 numbers, the low halves first.
void q4_k(const Byte* b, float* y) {
  const float d = half(b), dmin = half(b + 2);
  for (int i = 0; i < 256; ++i) {
    const ScaleAndMinimum s = scale_and_minimum(b + 4, i / 32);
    const int q = b[16 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
    y[i] = d * static_cast<float>(s.scale) * static_cast<float>(q) - dmin * static_cast<float>(s.minimum);
  }
}

// {f16 d, dmin; u8 scales[12]; u8 qh[32]; u8 qs[128]}: as q4_k; bit j of qh is the fifth bit in the j-th 32 numbers.
void q5_k(const Byte* b, float* y) {
  const float d = half(b), dmin = half(b + 2);
  for (int i = 0; i < 256; ++i) {
    const ScaleAndMinimum s = scale_and_minimum(b + 4, i / 32);
    const int q = (b[48 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15) | (b[16 + i % 32] >> (i / 32) & 1) << 4;
    y[i] = d * static_cast<float>(s.scale) * static_cast<float>(q) - dmin * static_cast<float>(s.minimum);
  }
}

// {u8 ql[128]; u8 qh[64]; i8 scales[16]; f16 d}: d s (q - 32) for each 16. Of each 128 numbers: the low halves of 64
// bytes, then the high ones; their two top bits in 32 bytes of qh, the lowest pair of bits for the first 32.
void q6_k(const Byte* b, float* y) {
  const float d = half(b + 208);
  for (int i = 0; i < 256; ++i) {
    const int low = b[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    const int high = b[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(b[192 + i / 16]));
    y[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

// {f16 d; u8 qs[16]}: d v[q], v the table of iq4_values.h.
void iq4_nl(const Byte* b, float* y) {
  const float d = half(b);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(kIq4Levels[b[2 + j] & 15]);
    y[j + 16] = d * static_cast<float>(kIq4Levels[b[2 + j] >> 4]);
  }
}

// {f16 d; u16 scales_h; u8 scales_l[4]; u8 qs[128]}: d (s - 32) v[q] for each 32 numbers, held as in iq4_nl.
void iq4_xs(const Byte* b, float* y) {
  const float d = half(b);
  const int scales_high = read<std::uint16_t>(b + 2);
  for (int i = 0; i < 256; ++i) {
    const int j = i / 32;
    const int s = (b[4 + j / 2] >> (j % 2 * 4) & 15) | (scales_high >> (2 * j) & 3) << 4;
    const int q = b[8 + j * 16 + i % 16] >> (i % 32 / 16 * 4) & 15;
    y[i] = d * static_cast<float>(s - 32) * static_cast<float>(kIq4Levels[q]);
  }
}

// {u8 e; u8 qs[16]}: 2^(e - 128) v[q], v the table of iq4_values.h. (OCP Microscaling Formats 1.0; to ggml the scale
// 255 is not NaN but 2^127 like any other.)
void mxfp4(const Byte* b, float* y) {
  const float d = std::ldexp(1.0f, static_cast<int>(b[0]) - 128);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(kMxfp4Levels[b[1 + j] & 15]);
    y[j + 16] = d * static_cast<float>(kMxfp4Levels[b[1 + j] >> 4]);
  }
}

void plain_f32(const Byte* b, float* y) { *y = read<float>(b); }
void plain_f16(const Byte* b, float* y) { *y = half(b); }
void plain_bf16(const Byte* b, float* y) { *y = f32_from_bf16(read<std::uint16_t>(b)); }
void plain_f64(const Byte* b, float* y) { *y = static_cast<float>(read<double>(b)); }

using Widen = void (*)(const Byte* block, float* y);
Widen widen_of(DType type) {
  switch (type) {
    case DType::f32:
      return plain_f32;
    case DType::f16:
      return plain_f16;
    case DType::bf16:
      return plain_bf16;
    case DType::f64:
      return plain_f64;
    case DType::q4_0:
      return q4_0;
    case DType::q4_1:
      return q4_1;
    case DType::q5_0:
      return q5_0;
    case DType::q5_1:
      return q5_1;
    case DType::q8_0:
      return q8_0;
    case DType::q2_k:
      return q2_k;
    case DType::q3_k:
      return q3_k;
    case DType::q4_k:
      return q4_k;
    case DType::q5_k:
      return q5_k;
    case DType::q6_k:
      return q6_k;
    case DType::iq4_nl:
      return iq4_nl;
    case DType::iq4_xs:
      return iq4_xs;
    case DType::mxfp4:
      return mxfp4;
  }
  throw Error(ErrorCode::bad_input, fmt::format("stored type {} does not exist", static_cast<int>(type)));
}

}  // namespace

void dequantize(const Matrix& w, std::int64_t row, std::int64_t begin, std::int64_t count, float* out) {
  const DTypeInfo& type = info(w.dtype);
  if (row < 0 || row >= w.rows || begin < 0 || count < 0 || begin > w.cols - count)
    throw Error(ErrorCode::bad_input, fmt::format("{} numbers from {} of row {} do not lie in weights of {} x {}",
                                                  count, begin, row, w.rows, w.cols));
  if (begin % type.block_elements != 0 || count % type.block_elements != 0)
    throw Error(ErrorCode::bad_input, fmt::format("{} numbers from {} are not whole {} blocks of {}", count, begin,
                                                  type.name, type.block_elements));
  const Widen widen = widen_of(w.dtype);
  const auto* block = reinterpret_cast<const Byte*>(w.row(row)) + begin / type.block_elements * type.block_bytes;
  for (std::int64_t k = 0; k < count; k += type.block_elements, block += type.block_bytes) widen(block, out + k);
}

}  // namespace regard
