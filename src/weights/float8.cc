#include "weights/float8.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "parallel/parallel_for.h"
#include "tensor/error.h"
#include "tensor/half.h"

namespace regard {

namespace {

// Exponent and fraction bits, what is added to the exponent, and which codes are no numbers.
struct Layout {
  int exponent_bits, fraction_bits, bias;
  bool ieee;  // the largest exponent is infinity and NaN
  bool fnuz;  // the code of -0 is the only NaN; otherwise (and not ieee) all ones are
};

Layout layout(Float8 type) {
  switch (type) {
    case Float8::e4m3:
      return {4, 3, 7, false, false};
    case Float8::e5m2:
      return {5, 2, 15, true, false};
    case Float8::e4m3fnuz:
      return {4, 3, 8, false, true};
    default:
      return {5, 2, 16, false, true};
  }
}

std::array<float, 256> table(Float8 type) {
  std::array<float, 256> values;
  for (int code = 0; code < 256; ++code)
    values[static_cast<std::size_t>(code)] = f32_from_float8(type, static_cast<std::uint8_t>(code));
  return values;
}

[[noreturn]] void misfit(std::string_view where, const std::string& what) {
  throw Error(ErrorCode::bad_input, fmt::format("{}: {}", where, what));
}

std::string text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t n : shape) out += fmt::format("{}{}", out.empty() ? "" : ", ", n);
  return "[" + out + "]";
}

// All scales, in their order.
std::vector<float> scales_of(std::string_view where, const StoredTensor& scale) {
  const auto stored = [&]<typename T>(T) {
    std::vector<T> values(static_cast<std::size_t>(scale.bytes) / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), scale.data, values.size() * sizeof(T));
    return values;
  };
  if (scale.format == "F32") return stored(float{});
  std::vector<float> out;
  if (scale.format == "BF16" || scale.format == "F16") {
    for (const std::uint16_t half : stored(std::uint16_t{}))
      out.push_back(scale.format == "F16" ? f32_from_f16(half) : f32_from_bf16(half));
  } else if (scale.format == "F8_E8M0" || scale.format == "U8") {
    for (const std::uint8_t code : stored(std::uint8_t{})) out.push_back(f32_from_float8(Float8::e8m0, code));
  } else {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: its scales are stored as {}, which is not supported", where, scale.format),
                "supported are F32 BF16 F16 F8_E8M0 U8");
  }
  return out;
}

std::int64_t blocks(std::int64_t elements, std::int64_t block) { return elements / block + (elements % block != 0); }

// The block that each scale of shape [n, m] is for.
ScaleBlock block_of(std::string_view where, const std::vector<std::int64_t>& scale, std::int64_t rows,
                    std::int64_t cols, std::optional<ScaleBlock> given) {
  const std::int64_t n = scale[0], m = scale[1];
  if (given) {
    if (given->rows < 1 || given->cols < 1)
      misfit(where, fmt::format("scales for blocks of {} x {} make no sense", given->rows, given->cols));
    if (blocks(rows, given->rows) == n && blocks(cols, given->cols) == m) return *given;
  } else if (n > 0 && m > 0 && rows % n == 0 && cols % m == 0) {
    return {rows / n, cols / m};
  }
  if (n == rows && m == 1) return {1, cols};
  misfit(where, fmt::format("scales of the shape {} do not fit a matrix of {} x {}{}", text(scale), rows, cols,
                            given ? fmt::format(" in blocks of {} x {}", given->rows, given->cols) : ""));
}

}  // namespace

std::optional<Float8> float8_from_name(std::string_view name) {
  if (name == "F8_E4M3") return Float8::e4m3;
  if (name == "F8_E5M2") return Float8::e5m2;
  if (name == "F8_E4M3FNUZ") return Float8::e4m3fnuz;
  if (name == "F8_E5M2FNUZ") return Float8::e5m2fnuz;
  if (name == "F8_E8M0") return Float8::e8m0;
  return std::nullopt;
}

float f32_from_float8(Float8 type, std::uint8_t code) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  if (type == Float8::e8m0) return code == 255 ? nan : std::ldexp(1.0f, code - 127);
  const Layout l = layout(type);
  const int fraction = code & ((1 << l.fraction_bits) - 1);
  const int exponent = (code & 0x7f) >> l.fraction_bits;
  const float sign = code & 0x80 ? -1.0f : 1.0f;
  if (l.fnuz && code == 0x80) return nan;
  if (!l.fnuz && !l.ieee && (code & 0x7f) == 0x7f) return nan;
  if (l.ieee && exponent == (1 << l.exponent_bits) - 1)
    return fraction != 0 ? nan : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - l.bias - l.fraction_bits);
  return sign * std::ldexp(static_cast<float>(fraction | 1 << l.fraction_bits), exponent - l.bias - l.fraction_bits);
}

Tensor<float, 2> widen_float8(std::string_view where, const StoredTensor& weight, const StoredTensor* scale,
                              std::optional<ScaleBlock> block) {
  const std::optional<Float8> type = float8_from_name(weight.format);
  if (!type || *type == Float8::e8m0)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: stored as {}, which is no float of 8 bits", where, weight.format));
  if (weight.shape.size() != 2) misfit(where, fmt::format("the shape {} is not that of a matrix", text(weight.shape)));
  const std::int64_t rows = weight.shape[0], cols = weight.shape[1];

  std::vector<float> scales = {1.0f};
  ScaleBlock each{rows, cols};
  if (scale != nullptr) {
    scales = scales_of(where, *scale);
    std::vector<std::int64_t> shape = scale->shape;
    if (shape.size() == 1 && shape[0] == rows) shape.push_back(1);  // one per row
    if (scales.size() != 1) {
      if (shape.size() != 2)
        misfit(where, fmt::format("scales of the shape {} do not fit a matrix of {} x {}", text(shape), rows, cols));
      each = block_of(where, shape, rows, cols, block);
    }
  }
  const std::array<float, 256> values = table(*type);
  const std::int64_t scales_per_row = cols == 0 ? 0 : blocks(cols, each.cols);
  Tensor<float, 2> out({rows, cols});
  parallel_for(cols == 0 ? 0 : rows, [&](std::int64_t row, int) {  // an empty matrix may say any number of rows
    const std::byte* codes = weight.data + row * cols;
    float* to = out.data() + row * cols;
    for (std::int64_t b = 0; b < scales_per_row; ++b) {
      const float factor = scales[static_cast<std::size_t>(row / each.rows * scales_per_row + b)];
      for (std::int64_t col = b * each.cols; col < std::min(cols, (b + 1) * each.cols); ++col)
        to[col] = values[static_cast<std::size_t>(codes[col])] * factor;
    }
  });
  return out;
}

}  // namespace regard
