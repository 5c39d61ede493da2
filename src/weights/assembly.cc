#include "weights/assembly.h"

#include <fmt/ranges.h>

#include <cstring>

#include "kernels/dequantize.h"
#include "tensor/error.h"
#include "weights/gguf.h"

namespace regard {
namespace {

// The matrix or vector that a stored tensor holds, as rows.
struct StoredRows {
  DType dtype = DType::f32;
  std::int64_t rows = 0, cols = 0;
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0;
};

// The bytes of [in, out] as [out, in].
void turn(const StoredRows& from, std::byte* to) {
  const std::int64_t size = info(from.dtype).block_bytes;
  for (std::int64_t r = 0; r < from.rows; ++r)
    for (std::int64_t c = 0; c < from.cols; ++c)
      std::memcpy(to + (c * from.rows + r) * size, from.data + r * from.row_bytes + c * size,
                  static_cast<std::size_t>(size));
}

std::byte* room(Checkpoint& checkpoint, std::int64_t bytes) {
  return checkpoint.reordered.emplace_back(std::make_shared<Buffer<std::byte>>(bytes))->data();
}

}  // namespace

std::string Assembly::where(const StoredTensor& tensor, std::string_view name) const {
  return fmt::format("{}: the tensor {}", checkpoint_.files[tensor.file], in_quotes(name));
}

Matrix Assembly::find(const ExpectedTensor& expected, const TensorPart& part) {
  const auto at = tensors_.find(part.tensor);
  if (at == tensors_.end()) {
    if (expected.optional) return {};
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the tensor {} is missing", checkpoint_.files.front(), in_quotes(part.tensor)));
  }
  const StoredTensor& stored = at->second;
  const bool first_use = use(part.tensor);

  // A vector's elements are rows of one.
  const std::int64_t n = expected.vector ? expected.cols : expected.rows;
  const std::int64_t width = expected.vector ? 1 : expected.cols;
  const std::size_t axes = (part.expert >= 0 ? 1u : 0u) + (expected.vector ? 1u : 2u);
  std::vector<std::int64_t> shape = stored.shape;
  if (part.row && expected.vector && shape.size() == axes + 1 && shape.front() == 1) shape.erase(shape.begin());
  const bool turned = part.turned && !expected.vector;
  const auto refuse_shape = [&] {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} has the shape [{}], but the configuration calls for {}", where(stored, part.tensor),
                            fmt::join(shape, ", "),
                            expected.vector ? fmt::format("{} numbers", n) : fmt::format("{} rows of {}", n, width)));
  };
  if (shape.size() != axes || (part.expert >= 0 && part.expert >= shape.front())) refuse_shape();
  if (!stored.dtype)
    throw Error(ErrorCode::unsupported,
                fmt::format("{} is stored as {}, which is not supported", where(stored, part.tensor), stored.format),
                "supported are F32 F16 BF16 F64 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS "
                "MXFP4");
  StoredRows rows;
  rows.dtype = *stored.dtype;
  rows.rows = expected.vector ? shape.back() : shape[axes - 2];
  rows.cols = expected.vector ? 1 : shape.back();
  if (expected.vector && info(rows.dtype).block_elements != 1)
    throw Error(ErrorCode::unsupported, fmt::format("{} is a vector stored as {}, which is not supported",
                                                    where(stored, part.tensor), stored.format));
  rows.row_bytes = row_bytes(rows.dtype, rows.cols);
  rows.data = stored.data;
  if (part.expert >= 0) rows.data += part.expert * rows.rows * rows.row_bytes;
  if (turned) {
    if (rows.cols < 1 || rows.rows != width) refuse_shape();
    if (info(rows.dtype).block_elements != 1)
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} is stored as {} and the other way round", where(stored, part.tensor), stored.format));
    std::byte* to = room(checkpoint_, rows.rows * rows.row_bytes);
    turn(rows, to);
    rows = {rows.dtype, rows.cols, rows.rows, to, row_bytes(rows.dtype, rows.rows)};
  }
  if (rows.cols != width) refuse_shape();
  if (part.block == 0 ? rows.rows != n
                      : n % part.block != 0 || part.first + (n / part.block - 1) * part.step + part.block > rows.rows)
    refuse_shape();

  if (first_use) {
    StoredAs& counted = (decoder_ ? decoder_->checkpoint_ : checkpoint_).stored[*stored.dtype];
    ++counted.tensors;
    counted.bytes += stored.bytes;
  }
  Matrix m{rows.dtype, n, width, rows.data + part.first * rows.row_bytes, rows.row_bytes};
  const bool even = part.block == 0 || part.block == n || part.block == part.step;
  if (!even && part.block == 1 && !expected.vector) {
    m.row_stride = part.step * rows.row_bytes;
  } else if (!even) {
    std::byte* to = room(checkpoint_, n * rows.row_bytes);
    for (std::int64_t i = 0; i < n / part.block; ++i)
      std::memcpy(to + i * part.block * rows.row_bytes, rows.data + (part.first + i * part.step) * rows.row_bytes,
                  static_cast<std::size_t>(part.block * rows.row_bytes));
    m.data = to;
  }
  if (expected.vector) m = {m.dtype, 1, n, m.data, n * rows.row_bytes};
  return m;
}

void Assembly::take(const ExpectedTensor& expected, const TensorPart& part) {
  const Matrix m = find(expected, part);
  if (m.data != nullptr) checkpoint_.matrices.emplace(expected.name, m);
}

std::vector<float> Assembly::values(const ExpectedTensor& expected, const TensorPart& part) {
  const Matrix m = find(expected, part);
  std::vector<float> values(static_cast<std::size_t>(m.cols));
  if (m.data != nullptr) dequantize(m, 0, 0, m.cols, values.data());
  return values;
}

void Assembly::refuse_leftovers() const {
  for (const auto& [name, tensor] : tensors_)
    if (!used_.contains(name))
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{} is not understood; as it may change the result, it is not ignored", where(tensor, name)));
}

}  // namespace regard
