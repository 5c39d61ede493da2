#include "weights/safetensors_write.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace regard {

namespace {

constexpr std::size_t kHeaderAlignment = 8;

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::vector<OutgoingTensor> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)) {
  std::sort(tensors_.begin(), tensors_.end(), [](const OutgoingTensor& a, const OutgoingTensor& b) {
    return std::tie(b.type, a.name) < std::tie(a.type, b.name);
  });
  std::string json;
  if (!metadata.empty()) json = "\"__metadata__\":" + nlohmann::json(metadata).dump();
  for (const OutgoingTensor& tensor : tensors_) {
    std::string shape;
    for (const std::int64_t n : tensor.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ",", n);
    json += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", json.empty() ? "" : ",",
                        quoted(tensor.name), tensor.type->name, shape, data_bytes_, data_bytes_ + tensor.bytes);
    data_bytes_ += tensor.bytes;
  }
  json = "{" + json + "}";
  json.resize((json.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  const std::uint64_t length = json.size();
  header_.resize(8);
  std::memcpy(header_.data(), &length, 8);
  header_ += json;
}

std::int64_t SafetensorsWriter::bytes() const { return static_cast<std::int64_t>(header_.size()) + data_bytes_; }

void SafetensorsWriter::write(const ByteSink& sink, const std::string& what, Progress* progress) const {
  std::int64_t done = 0;
  const ByteSink counting = [&](const std::byte* data, std::int64_t count) {
    if (progress != nullptr) progress->at(what, done, bytes());
    sink(data, count);
    done += count;
  };
  counting(reinterpret_cast<const std::byte*>(header_.data()), static_cast<std::int64_t>(header_.size()));
  for (const OutgoingTensor& tensor : tensors_) tensor.write(counting);
}

}  // namespace regard
