#pragma once
// A model's weights as one safetensors file: stored values as they are; quantised ones widened to f32 on request.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "parallel/progress.h"
#include "weights/safetensors_write.h"

namespace regard {

// What is in a file or folder, ready to be written.
struct Conversion {
  std::vector<OutgoingTensor> tensors;
  std::map<std::string, std::string> metadata;
  std::int64_t widened = 0;            // tensors that become f32
  std::shared_ptr<const void> source;  // keeps alive what `tensors` read from
  // To be asked after writing: Error{io} when a file was changed meanwhile.
  std::function<void()> check_intact;
};

// `path`: a .gguf file (names stay GGUF's, and general.architecture goes into the metadata), or what read_safetensors()
// takes (names and metadata stay). `widen`: what is quantised becomes f32: GGUF blocks, FP8 with its scales, MXFP4. Not
// quantised is not changed. Errors: unsupported naming the first quantised tensor and its type when `widen` is false,
// or regard cannot read it; those of the readers.
Conversion convert_from(const std::filesystem::path& path, bool widen);

}  // namespace regard
