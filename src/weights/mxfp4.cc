#include "weights/mxfp4.h"

#include <cmath>
#include <limits>

#include "parallel/parallel_for.h"
#include "tensor/error.h"
#include "weights/float8.h"

namespace regard {

namespace {

constexpr std::int64_t kBlockBytes = kMxfp4Block / 2;
constexpr float kValues[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

}  // namespace

Tensor<float, 2> widen_mxfp4(std::string_view where, const StoredTensor& blocks, const StoredTensor& scales) {
  if (blocks.format != "U8" || scales.format != "U8")
    throw Error(ErrorCode::unsupported, fmt::format("{}: blocks stored as {} and scales as {}; both should be U8",
                                                    where, blocks.format, scales.format));
  std::vector<std::int64_t> shape = scales.shape;
  shape.push_back(kBlockBytes);
  if (shape.size() < 3 || blocks.shape != shape)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the shapes of blocks and scales do not fit each other, or are not MXFP4's", where));
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

}  // namespace regard
