#pragma once
// A small model of the Llama family with random weights and a tokenizer of single bytes, as a GGUF that a test can
// change.

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/gguf_writer.h"
#include "support/random_weights.h"

namespace regard::testing {

struct TinyLlama {
  std::uint32_t layers = 2, heads = 4, kv_heads = 2, head_dim = 16, width = 64, hidden = 96, context = 256;
  float rope_base = 10000, epsilon = 1e-5f;
  DType type = DType::f32;  // of the matrices; inputs must be whole blocks of it
  DType embedding_type = DType::f32;
  bool tied = true, biases = false;
  bool rope_divisors = false;  // a rope_freqs.weight, as Llama 3 has
  std::uint32_t seed = 1;
  std::vector<std::string> merges = {"h e", "he l", "l o"};
};

// GPT-2's printable letter for a byte, as UTF-8.
inline std::string byte_letter(int byte) {
  int code = byte;
  const auto printable = [](int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
  };
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += !printable(b);
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

// Vocabulary: the 256 bytes (id = byte), one piece per merge, then "<|endoftext|>" (control), which is BOS and EOS.
inline GgufWriter tiny_llama(const TinyLlama& t = {}) {
  GgufWriter w;
  w.string("general.architecture", "llama");
  w.string("general.name", "tiny");
  w.u32("llama.block_count", t.layers);
  w.u32("llama.context_length", t.context);
  w.u32("llama.embedding_length", t.width);
  w.u32("llama.feed_forward_length", t.hidden);
  w.u32("llama.attention.head_count", t.heads);
  w.u32("llama.attention.head_count_kv", t.kv_heads);
  w.u32("llama.attention.key_length", t.head_dim);
  w.u32("llama.attention.value_length", t.head_dim);
  w.u32("llama.rope.dimension_count", t.head_dim);
  w.f32("llama.rope.freq_base", t.rope_base);
  w.f32("llama.attention.layer_norm_rms_epsilon", t.epsilon);

  std::vector<std::string> pieces;
  for (int b = 0; b < 256; ++b) pieces.push_back(byte_letter(b));
  for (const std::string& merge : t.merges) {
    const std::size_t space = merge.find(' ');
    pieces.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  pieces.push_back("<|endoftext|>");
  const std::uint32_t vocabulary = static_cast<std::uint32_t>(pieces.size());
  std::vector<std::int32_t> types(vocabulary, 1);
  types.back() = 3;
  w.u32("llama.vocab_size", vocabulary);
  w.string("tokenizer.ggml.model", "gpt2");
  w.string("tokenizer.ggml.pre", "smollm");
  w.strings("tokenizer.ggml.tokens", pieces);
  w.i32s("tokenizer.ggml.token_type", types);
  w.strings("tokenizer.ggml.merges", t.merges);
  w.u32("tokenizer.ggml.bos_token_id", vocabulary - 1);
  w.u32("tokenizer.ggml.eos_token_id", vocabulary - 1);
  w.boolean("tokenizer.ggml.add_bos_token", false);

  std::uint32_t seed = t.seed;
  const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols, DType type, float scale) {
    w.tensor(name + ".weight", {cols, rows}, type,
             random_weights(type, static_cast<std::int64_t>(rows * cols), ++seed * 7919, scale));
  };
  const auto vector = [&](const std::string& name, std::uint64_t n, float mean) {
    std::mt19937 bits(++seed * 7919);
    std::normal_distribution<float> normal(mean, 0.2f);
    std::vector<float> values(n);
    for (float& v : values) v = normal(bits);
    w.tensor(name, {n}, values);
  };
  const auto linear = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    matrix(name, rows, cols, t.type, 1.5f / std::sqrt(static_cast<float>(cols)));
    if (t.biases) vector(name + ".bias", rows, 0);
  };
  matrix("token_embd", vocabulary, t.width, t.embedding_type, 1);
  for (std::uint32_t layer = 0; layer < t.layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    vector(block + "attn_norm.weight", t.width, 1);
    linear(block + "attn_q", std::uint64_t{t.heads} * t.head_dim, t.width);
    linear(block + "attn_k", std::uint64_t{t.kv_heads} * t.head_dim, t.width);
    linear(block + "attn_v", std::uint64_t{t.kv_heads} * t.head_dim, t.width);
    linear(block + "attn_output", t.width, std::uint64_t{t.heads} * t.head_dim);
    vector(block + "ffn_norm.weight", t.width, 1);
    linear(block + "ffn_gate", t.hidden, t.width);
    linear(block + "ffn_up", t.hidden, t.width);
    linear(block + "ffn_down", t.width, t.hidden);
  }
  vector("output_norm.weight", t.width, 1);
  if (!t.tied) matrix("output", vocabulary, t.width, t.embedding_type, 1.0f / std::sqrt(static_cast<float>(t.width)));
  if (t.rope_divisors) {
    std::vector<float> divisors(t.head_dim / 2, 1.0f);
    for (std::size_t i = divisors.size() / 2; i < divisors.size(); ++i) divisors[i] = 8.0f;
    w.tensor("rope_freqs.weight", {divisors.size()}, divisors);
  }
  return w;
}

}  // namespace regard::testing
