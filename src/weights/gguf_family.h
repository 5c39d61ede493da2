#pragma once
// The architectures of GGUF files as data: in what each differs from plain Llama, and where its tensors lie.

#include <span>
#include <string>
#include <string_view>

#include "weights/assembly.h"
#include "weights/gguf_keys.h"
#include "weights/model_config.h"

namespace regard {

struct GgufFamily {
  std::string_view architecture;
  std::span<const std::string_view> keys;            // understood beside those of every architecture
  void (*fill)(const GgufKeys& keys, ModelConfig&);  // in what it differs from the plain family
  NormKind norm = NormKind::rms;
  bool mixture = false;  // has experts
  bool causal = true;
};

// Error{unsupported} naming the architecture and those there are.
const GgufFamily& gguf_family(const GgufFile& gguf, std::string_view architecture);

// Where a canonical tensor (expected_tensors.h) lies: mostly under that name (their names are GGUF's); else in a tensor
// of several, attn_qkv, ffn_up of gate and up, ffn_up_exps of all experts.
TensorPart gguf_part(const ModelConfig& config, const StoredTensors& tensors, const std::string& canonical);

}  // namespace regard
