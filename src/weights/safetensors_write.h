#pragma once
// Writing a safetensors file tensor by tensor, as the public writer does (safetensors/src/tensor.rs, prepare): wide
// types first, then by name, so the data is aligned; the header padded to a multiple of eight. The same tensors and
// metadata give the same bytes.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "parallel/progress.h"
#include "weights/safetensors_type.h"

namespace regard {

using ByteSink = std::function<void(const std::byte* data, std::int64_t bytes)>;

struct OutgoingTensor {
  std::string name;
  const SafetensorsType* type = nullptr;
  std::vector<std::int64_t> shape;                  // row-major
  std::int64_t bytes = 0;                           // what the shape takes
  std::function<void(const ByteSink& sink)> write;  // hands over so many bytes, in pieces
};

class SafetensorsWriter {
 public:
  SafetensorsWriter(std::vector<OutgoingTensor> tensors, const std::map<std::string, std::string>& metadata);

  std::int64_t bytes() const;  // of the whole file
  // `progress` may be null; `what` is what it is told. What sink, progress and tensors throw leaves from here.
  void write(const ByteSink& sink, const std::string& what, Progress* progress) const;

 private:
  std::vector<OutgoingTensor> tensors_;
  std::string header_;  // with its length in front
  std::int64_t data_bytes_ = 0;
};

}  // namespace regard
