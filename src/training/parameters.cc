#include "training/parameters.h"

#include <algorithm>

#include "kernels/dequantize.h"
#include "tensor/error.h"

namespace regard {

void Parameters::add(std::string name, std::int64_t rows, std::int64_t cols, bool vector) {
  places_.push_back({std::move(name), size_, rows, cols, vector});
  constexpr std::int64_t kLine = 16;  // tensors begin at a cache line
  size_ += (rows * cols + kLine - 1) / kLine * kLine;
}

Parameters::Parameters(const ModelConfig& config) {
  for (const ExpectedTensor& tensor : expected_tensors(config))
    if (!tensor.optional) add(tensor.name, tensor.rows, tensor.cols, tensor.vector);
  memory_ = Buffer<float>(size_);
}

Parameters::Parameters(const Checkpoint& checkpoint, From from) {
  for (const auto& [name, matrix] : checkpoint.matrices) add(name, matrix.rows, matrix.cols, matrix.rows == 1);
  memory_ = Buffer<float>(size_);
  if (from == From::zeros) return;
  for (const Place& place : places_) {
    const Matrix& matrix = checkpoint.matrix(place.name);
    for (std::int64_t r = 0; r < place.rows; ++r)
      dequantize(matrix, r, 0, place.cols, memory_.data() + place.begin + r * place.cols);
  }
}

View<float, 2> Parameters::find(std::string_view name) {
  const auto place = std::find_if(places_.begin(), places_.end(), [&](const Place& p) { return p.name == name; });
  if (place == places_.end()) return {};
  return {memory_.data() + place->begin, {place->rows, place->cols}};
}

View<float, 2> Parameters::at(std::string_view name) {
  const View<float, 2> found = find(name);
  if (found.data == nullptr) throw Error(ErrorCode::not_found, fmt::format("the model has no tensor {}", name));
  return found;
}

Checkpoint Parameters::checkpoint(const ModelConfig& config, const TokenizerSpec& tokenizer) const {
  Checkpoint checkpoint;
  checkpoint.config = config;
  checkpoint.tokenizer = tokenizer;
  for (const Place& place : places_) {
    Matrix matrix{DType::f32, place.rows, place.cols, reinterpret_cast<const std::byte*>(memory_.data() + place.begin),
                  place.cols * static_cast<std::int64_t>(sizeof(float))};
    checkpoint.bytes += place.rows * matrix.row_stride;
    checkpoint.matrices.emplace(place.name, matrix);
  }
  checkpoint.stored[DType::f32] = {std::ssize(places_), checkpoint.bytes};
  return checkpoint;
}

}  // namespace regard
