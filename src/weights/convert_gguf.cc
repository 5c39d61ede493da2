#include <algorithm>

#include "kernels/dequantize.h"
#include "parallel/parallel_for.h"
#include "tensor/buffer.h"
#include "tensor/error.h"
#include "weights/convert_sources.h"
#include "weights/gguf_shards.h"

namespace regard {

namespace {

constexpr std::int64_t kPieceElements = 1 << 20;  // widened at a time, at least a row

std::function<void(const ByteSink&)> widened(const Matrix& w) {
  return [=](const ByteSink& sink) {
    if (w.rows == 0 || w.cols == 0) return;
    const std::int64_t step = std::max<std::int64_t>(1, kPieceElements / w.cols);
    Buffer<float> rows(std::min(step, w.rows) * w.cols);
    for (std::int64_t first = 0; first < w.rows; first += step) {
      const std::int64_t count = std::min(step, w.rows - first);
      parallel_for(count, [&](std::int64_t i, int) { dequantize(w, first + i, 0, w.cols, rows.data() + i * w.cols); });
      sink(reinterpret_cast<const std::byte*>(rows.data()), count * w.cols * 4);
    }
  };
}

}  // namespace

Conversion convert_from_gguf(const std::filesystem::path& path, bool widen) {
  const auto shards = std::make_shared<const GgufShards>(path);
  Conversion conversion;
  conversion.source = shards;
  conversion.check_intact = [shards] {
    for (const auto& mapping : shards->mappings) mapping->check_intact();
  };
  if (const auto family = shards->first().find_string("general.architecture"))
    conversion.metadata["general.architecture"] = *family;
  for (const auto& [name, place] : shards->tensors) {
    const GgufTensor& tensor = *place.tensor;
    const std::byte* data = shards->mapping(place).data() + tensor.offset;
    OutgoingTensor out;
    out.name = name;
    out.shape.assign(tensor.shape.rbegin(), tensor.shape.rend());
    out.bytes = tensor.bytes;
    out.type = tensor.type->dtype ? safetensors_type(*tensor.type->dtype) : find_safetensors_type(tensor.type->name);
    if (out.type != nullptr) {
      out.write = copy_of(data, tensor.bytes);
    } else {
      if (!tensor.type->dtype)
        throw Error(ErrorCode::unsupported, fmt::format("{}: the tensor {} is stored as {}, which is not supported",
                                                        shards->file(place), in_quotes(name), tensor.type->name));
      if (!widen) refuse_quantised(shards->file(place), name, tensor.type->name);
      Matrix w;
      w.dtype = *tensor.type->dtype;
      w.cols = tensor.shape[0];  // a type of blocks has at least one axis
      const std::int64_t blocks = tensor.bytes / tensor.type->block_bytes;
      w.rows = w.cols == 0 ? 0 : blocks * tensor.type->block_elements / w.cols;
      w.row_stride = w.cols / tensor.type->block_elements * tensor.type->block_bytes;
      w.data = data;
      out.type = safetensors_type(DType::f32);
      out.bytes = w.rows * w.cols * 4;
      out.write = widened(w);
      ++conversion.widened;
    }
    conversion.tensors.push_back(std::move(out));
  }
  return conversion;
}

}  // namespace regard
