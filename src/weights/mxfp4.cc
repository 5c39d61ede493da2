#include "weights/mxfp4.h"

#include <cmath>
#include <limits>

#include "parallel/parallel_for.h"
#include "tensor/dtype.h"
#include "tensor/error.h"
#include "weights/float8.h"

namespace regard {

namespace {

constexpr std::int64_t kBlockBytes = kMxfp4Block / 2;
constexpr float kValues[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

void check(std::string_view where, const StoredTensor& blocks, const StoredTensor& scales) {
  if (blocks.format != "U8" || scales.format != "U8")
    throw Error(ErrorCode::unsupported, fmt::format("{}: blocks stored as {} and scales as {}; both should be U8",
                                                    where, blocks.format, scales.format));
  std::vector<std::int64_t> shape = scales.shape;
  shape.push_back(kBlockBytes);
  if (shape.size() < 3 || blocks.shape != shape)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the shapes of blocks and scales do not fit each other, or are not MXFP4's", where));
}

}  // namespace

Tensor<float, 2> widen_mxfp4(std::string_view where, const StoredTensor& blocks, const StoredTensor& scales) {
  check(where, blocks, scales);
  const std::int64_t groups = scales.shape.back();
  const std::int64_t rows = groups == 0 ? 0 : scales.bytes / groups;
  Tensor<float, 2> out({rows, groups * kMxfp4Block});
  parallel_for(rows, [&](std::int64_t row, int) {
    float* to = out.data() + row * groups * kMxfp4Block;
    for (std::int64_t group = row * groups; group < (row + 1) * groups; ++group) {
      const float scale = f32_from_float8(Float8::e8m0, static_cast<std::uint8_t>(scales.data[group]));
      const std::byte* from = blocks.data + group * kBlockBytes;
      for (std::int64_t j = 0; j < kBlockBytes; ++j) {
        const auto pair = static_cast<unsigned>(from[j]);
        *to++ = kValues[pair & 15] * scale;
        *to++ = kValues[pair >> 4] * scale;
      }
    }
  });
  return out;
}

void order_as_gguf(std::string_view where, const StoredTensor& blocks, const StoredTensor& scales, std::byte* out) {
  check(where, blocks, scales);
  for (std::int64_t block = 0; block < scales.bytes; ++block)
    if (scales.data[block] == std::byte{255})
      throw Error(ErrorCode::bad_input, fmt::format("{}: the scale of block {} is not a number", where, block));
  const std::int64_t bytes = info(DType::mxfp4).block_bytes;
  parallel_for(scales.bytes, [&](std::int64_t block, int) {
    const std::byte* from = blocks.data + block * kBlockBytes;
    std::byte* to = out + block * bytes;
    *to++ = scales.data[block];
    const auto number = [&](std::int64_t i) { return from[i / 2] >> (i % 2 * 4) & std::byte{15}; };
    for (std::int64_t j = 0; j < kBlockBytes; ++j) *to++ = number(j) | number(j + kMxfp4Block / 2) << 4;
  });
}

}  // namespace regard
