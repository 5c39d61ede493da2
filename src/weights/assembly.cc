#include "weights/assembly.h"

#include <fmt/ranges.h>

#include <cstring>

#include "kernels/dequantize.h"
#include "tensor/error.h"
#include "weights/gguf.h"

namespace regard {

struct Assembly::StoredRows {
  DType dtype = DType::f32;
  std::int64_t rows = 0, cols = 0;
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0;
};

std::byte* Assembly::room(std::int64_t bytes) {
  return checkpoint_.reordered.emplace_back(std::make_shared<Buffer<std::byte>>(bytes))->data();
}

std::string Assembly::where(const StoredTensor& tensor, std::string_view name) const {
  return fmt::format("{}: the tensor {}", checkpoint_.files[tensor.file], in_quotes(name));
}

// The stored bytes of [in, out] as [out, in].
Assembly::StoredRows Assembly::turned(const StoredRows& from) {
  const std::int64_t size = info(from.dtype).block_bytes;
  const auto [at, is_new] = turned_.try_emplace(from.data);
  if (is_new) {
    std::byte* to = room(from.rows * from.row_bytes);
    at->second = to;
    for (std::int64_t r = 0; r < from.rows; ++r)
      for (std::int64_t c = 0; c < from.cols; ++c)
        std::memcpy(to + (c * from.rows + r) * size, from.data + r * from.row_bytes + c * size,
                    static_cast<std::size_t>(size));
  }
  return {from.dtype, from.cols, from.rows, at->second, row_bytes(from.dtype, from.rows)};
}

// All rows that the part chooses from, checked against what is called for. A vector's elements are rows of one.
Assembly::StoredRows Assembly::stored_rows(const StoredTensor& stored, const ExpectedTensor& expected,
                                           const TensorPart& part) {
  const std::string at = where(stored, part.tensor);
  const std::int64_t n = expected.vector ? expected.cols : expected.rows;
  const std::int64_t width = expected.vector ? 1 : expected.cols;
  const std::size_t axes = (part.expert >= 0 ? 1u : 0u) + (expected.vector ? 1u : 2u);
  std::vector<std::int64_t> shape = stored.shape;
  if (part.row && shape.size() == axes + 1 && shape.front() == 1) shape.erase(shape.begin());
  const auto refuse_shape = [&] {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{} has the shape [{}], but the configuration calls for {}", at, fmt::join(stored.shape, ", "),
                    expected.vector ? fmt::format("{} numbers", n) : fmt::format("{} rows of {}", n, width)));
  };
  if (shape.size() != axes || (part.expert >= 0 && part.expert >= shape.front())) refuse_shape();
  if (!stored.dtype)
    throw Error(ErrorCode::unsupported, fmt::format("{} is stored as {}, which is not supported", at, stored.format),
                "supported are F32 F16 BF16 F64 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS "
                "MXFP4");
  const bool plain = info(*stored.dtype).block_elements == 1;
  if (!plain && (expected.vector || part.turned))
    throw Error(ErrorCode::unsupported, fmt::format("{} is {} stored as {}, which is not supported", at,
                                                    expected.vector ? "a vector" : "a turned matrix", stored.format));
  StoredRows rows{*stored.dtype, shape.back(), 1, stored.data, 0};
  if (!expected.vector) rows.rows = shape[axes - 2], rows.cols = shape.back();
  rows.row_bytes = row_bytes(rows.dtype, rows.cols);
  if (part.expert >= 0) rows.data += part.expert * rows.rows * rows.row_bytes;
  if (part.turned && !expected.vector) {
    if (rows.cols < 1 || rows.rows != width) refuse_shape();
    rows = turned(rows);
  }
  const bool all = part.block == 0;
  if (rows.cols != width || (all && rows.rows != n)) refuse_shape();
  if (!all && (n % part.block != 0 || part.first + (n / part.block - 1) * part.step + part.block > rows.rows))
    refuse_shape();
  return rows;
}

Matrix Assembly::find(const ExpectedTensor& expected, const TensorPart& part) {
  const auto at = tensors_.find(part.tensor);
  if (at == tensors_.end()) {
    if (expected.optional) return {};
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the tensor {} is missing", checkpoint_.files.front(), in_quotes(part.tensor)));
  }
  const StoredRows rows = stored_rows(at->second, expected, part);
  if (use(part.tensor)) {
    StoredAs& counted = counts().stored[rows.dtype];
    ++counted.tensors;
    counted.bytes += at->second.bytes;
  }
  const std::int64_t n = expected.vector ? expected.cols : expected.rows;
  Matrix m{rows.dtype, n, rows.cols, rows.data + part.first * rows.row_bytes, rows.row_bytes};
  const bool together = part.block == 0 || part.block == n || part.block == part.step;
  if (!together && part.block == 1 && !expected.vector) {
    m.row_stride = part.step * rows.row_bytes;
  } else if (!together) {
    std::byte* to = room(n * rows.row_bytes);
    const std::int64_t bytes = part.block * rows.row_bytes;
    for (std::int64_t i = 0; i < n / part.block; ++i)
      std::memcpy(to + i * bytes, rows.data + (part.first + i * part.step) * rows.row_bytes,
                  static_cast<std::size_t>(bytes));
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

void Assembly::ignore_twin(const std::string& tensor, const std::string& of) {
  const auto twin = tensors_.find(tensor), original = tensors_.find(of);
  if (twin == tensors_.end() || original == tensors_.end()) return;
  const StoredTensor &a = twin->second, &b = original->second;
  if (a.format != b.format || a.bytes != b.bytes || std::memcmp(a.data, b.data, static_cast<std::size_t>(a.bytes)) != 0)
    throw Error(ErrorCode::bad_input,
                fmt::format("{} should hold {} again, but its numbers are others", where(a, tensor), in_quotes(of)),
                "if they are not meant to be the same, config.json should say \"tie_word_embeddings\": false");
  ignore(tensor);
}

void Assembly::refuse_leftovers() const {
  for (const auto& [name, tensor] : tensors_)
    if (!used_.contains(name))
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{} is not understood; as it may change the result, it is not ignored", where(tensor, name)));
}

}  // namespace regard
