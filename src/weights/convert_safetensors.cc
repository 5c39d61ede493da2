#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "parallel/parallel_for.h"
#include "tensor/error.h"
#include "weights/checked_json.h"
#include "weights/convert_sources.h"
#include "weights/float8.h"
#include "weights/gguf.h"
#include "weights/mxfp4.h"
#include "weights/safetensors.h"

namespace regard {

namespace {

constexpr std::string_view kBlocks = "_blocks", kScales = "_scales";

// quantization_config.weight_block_size of the config.json beside the weights.
std::optional<ScaleBlock> block_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::is_directory(path, error) ? path : path.parent_path();
  if (!std::filesystem::exists(folder / "config.json", error)) return std::nullopt;
  const auto quantisation = read_json(folder / "config.json").find("quantization_config");
  if (!quantisation) return std::nullopt;
  const auto size = quantisation->find("weight_block_size");
  if (!size) return std::nullopt;
  if (size->size() != 2) throw size->error("should be two numbers");
  return ScaleBlock{size->at(std::size_t{0}).integer(), size->at(std::size_t{1}).integer()};
}

const StoredTensor* find(const SafetensorsFiles& files, const std::string& name) {
  const auto at = files.tensors.find(name);
  return at == files.tensors.end() ? nullptr : &at->second;
}

OutgoingTensor wide(std::string name, std::vector<std::int64_t> shape, std::int64_t elements,
                    std::function<Tensor<float, 2>()> values) {
  OutgoingTensor out;
  out.name = std::move(name);
  out.type = safetensors_type(DType::f32);
  out.shape = std::move(shape);
  out.bytes = elements * 4;
  out.write = [values = std::move(values), bytes = out.bytes](const ByteSink& sink) {
    const Tensor<float, 2> tensor = values();
    copy_of(reinterpret_cast<const std::byte*>(tensor.data()), bytes)(sink);
  };
  return out;
}

// [rows, cols] of each of the leading axes -> [cols, rows], as the unquantised layer has it (transformers, mxfp4.py).
Tensor<float, 2> transposed(const Tensor<float, 2>& all, std::int64_t rows) {
  const std::int64_t cols = all.shape()[1], each = rows * cols;
  Tensor<float, 2> out({rows == 0 ? 0 : all.shape()[0] / rows * cols, rows});
  parallel_for(out.shape()[0], [&](std::int64_t line, int) {
    const float* from = all.data() + line / cols * each + line % cols;
    for (std::int64_t row = 0; row < rows; ++row) out.data()[line * rows + row] = from[row * cols];
  });
  return out;
}

class Planner {
 public:
  Planner(const std::filesystem::path& path, bool widen)
      : files_(std::make_shared<const SafetensorsFiles>(read_safetensors(path))), path_(path), widen_(widen) {}

  Conversion plan() {
    Conversion conversion;
    conversion.source = files_;
    conversion.check_intact = [files = files_] {
      for (const auto& mapping : files->mappings) mapping->check_intact();
    };
    conversion.metadata = files_->metadata;
    for (const auto& [name, tensor] : files_->tensors)
      if (auto out = quantised(name, tensor)) {
        if (!widen_) refuse_quantised(file_of(tensor), name, tensor.format);
        conversion.tensors.push_back(std::move(*out));
        ++conversion.widened;
      }
    for (const auto& [name, tensor] : files_->tensors) {
      if (used_.contains(name)) continue;
      conversion.tensors.push_back(
          {name, find_safetensors_type(tensor.format), tensor.shape, tensor.bytes, copy_of(tensor.data, tensor.bytes)});
    }
    return conversion;
  }

 private:
  std::string file_of(const StoredTensor& tensor) const { return files_->mappings[tensor.file]->path().string(); }

  std::optional<OutgoingTensor> quantised(const std::string& name, const StoredTensor& tensor) {
    const std::string where = fmt::format("{}: the tensor {}", file_of(tensor), in_quotes(name));
    if (name.ends_with(kBlocks)) {
      const std::string plain = name.substr(0, name.size() - kBlocks.size()),
                        scales_name = plain + std::string(kScales);
      if (const StoredTensor* scales = find(*files_, scales_name)) {
        used_.insert({name, scales_name});
        return mxfp4(where, plain, tensor, *scales);
      }
    }
    const auto type = float8_from_name(tensor.format);
    if (!type && (tensor.format == "F4" || tensor.format.starts_with("F6_")))
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} is stored as {}, which is not supported", where, tensor.format));
    if (!type || *type == Float8::e8m0) return std::nullopt;  // scales alone are what they are
    used_.insert(name);
    const StoredTensor* scale = nullptr;
    for (const char* end : {"_scale_inv", "_scale"})
      if (const StoredTensor* found = find(*files_, name + end); found != nullptr && scale == nullptr) {
        scale = found;
        used_.insert(name + end);
      }
    StoredTensor matrix = tensor;
    if (matrix.shape.size() != 2 && scale == nullptr) matrix.shape = {1, tensor.bytes};
    return wide(name, tensor.shape, tensor.bytes,
                [=, files = files_, block = scale == nullptr ? std::nullopt : block_of(path_)] {
                  return widen_float8(where, matrix, scale, block);
                });
  }

  OutgoingTensor mxfp4(const std::string& where, const std::string& plain, const StoredTensor& blocks,
                       const StoredTensor& scales) const {
    if (scales.shape.size() < 2)
      throw Error(ErrorCode::bad_input, fmt::format("{}: its scales have too few axes", where));
    std::vector<std::int64_t> shape = scales.shape;
    const std::int64_t rows = shape[shape.size() - 2];
    std::int64_t& groups = shape.back();
    if (__builtin_mul_overflow(groups, kMxfp4Block, &groups))
      throw Error(ErrorCode::bad_input, fmt::format("{}: its scales have an axis that is too long", where));
    std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
    return wide(plain, shape, scales.bytes * kMxfp4Block,
                [=, files = files_] { return transposed(widen_mxfp4(where, blocks, scales), rows); });
  }

  std::shared_ptr<const SafetensorsFiles> files_;
  std::filesystem::path path_;
  bool widen_;
  std::set<std::string> used_;
};

}  // namespace

Conversion convert_from_safetensors(const std::filesystem::path& path, bool widen) {
  return Planner(path, widen).plan();
}

}  // namespace regard
