// What GGUF files hold in one tensor that the model has apart: experts, q, k and v, gate and up. Whole models are in
// tests/model/gguf_families_test.cc.

#include "weights/gguf_family.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/random_weights.h"
#include "support/temp_folder.h"
#include "support/tiny_llama.h"
#include "weights/checkpoint.h"

namespace regard {
namespace {

using testing::GgufWriter;
using testing::random_weights;

// The tiny model under another name, its feed-forwards taken out.
GgufWriter without_feed_forward(const std::string& architecture, const testing::TinyLlama& t) {
  GgufWriter w = testing::tiny_llama(t);
  for (GgufWriter::Entry& entry : w.entries)
    if (entry.key.starts_with("llama.")) entry.key = architecture + entry.key.substr(5);
  w.remove("general.architecture");
  w.string("general.architecture", architecture);
  for (std::uint32_t l = 0; l < t.layers; ++l)
    for (const char* piece : {"ffn_gate", "ffn_up", "ffn_down"})
      w.remove_tensor("blk." + std::to_string(l) + "." + piece + ".weight");
  return w;
}

class GgufFamilyTest : public ::testing::Test {
 protected:
  Checkpoint load(const GgufWriter& w) {
    w.write(path);
    return load_checkpoint(path);
  }
  const testing::TempFolder folder;
  const std::filesystem::path path = folder / "x.gguf";
};

constexpr std::uint32_t kExperts = 3, kWidth = 64, kHidden = 32;

GgufWriter mixture() {
  testing::TinyLlama t;
  t.layers = 1;
  GgufWriter w = without_feed_forward("qwen3moe", t);
  w.u32("qwen3moe.expert_count", kExperts);
  w.u32("qwen3moe.expert_used_count", 2);
  w.u32("qwen3moe.expert_feed_forward_length", kHidden);
  for (const char* norm : {"blk.0.attn_q_norm.weight", "blk.0.attn_k_norm.weight"})
    w.tensor(norm, {16}, std::vector<float>(16, 1));
  w.tensor("blk.0.ffn_gate_inp.weight", {kWidth, kExperts}, std::vector<float>(kWidth * kExperts, 0.1f));
  std::uint32_t seed = 0;
  const auto stack = [&](const char* name, std::uint64_t cols, std::uint64_t rows) {
    w.tensor(name, {cols, rows, kExperts}, DType::mxfp4,
             random_weights(DType::mxfp4, static_cast<std::int64_t>(cols * rows * kExperts), ++seed));
  };
  stack("blk.0.ffn_gate_exps.weight", kWidth, kHidden);
  stack("blk.0.ffn_up_exps.weight", kWidth, kHidden);
  stack("blk.0.ffn_down_exps.weight", kHidden, kWidth);
  return w;
}

TEST_F(GgufFamilyTest, ExpertsLieOneBehindTheOther) {
  GgufWriter w = mixture();
  const Checkpoint checkpoint = load(w);
  EXPECT_EQ(checkpoint.config.mixture.experts, kExperts);
  EXPECT_EQ(checkpoint.config.mixture.layers, std::vector<bool>{true});
  for (const std::string piece : {"gate", "up", "down"}) {
    const std::string& stored = w.tensor_named("blk.0.ffn_" + piece + "_exps.weight").data;
    for (std::uint32_t e = 0; e < kExperts; ++e) {
      const Matrix& m = checkpoint.matrix("blk.0.ffn_" + piece + "." + std::to_string(e) + ".weight");
      EXPECT_EQ(m.dtype, DType::mxfp4);
      EXPECT_EQ(m.rows, piece == "down" ? kWidth : kHidden);
      const std::size_t bytes = stored.size() / kExperts;
      ASSERT_EQ(static_cast<std::size_t>(m.rows * m.row_stride), bytes);
      EXPECT_EQ(std::memcmp(m.data, stored.data() + e * bytes, bytes), 0) << piece << " of " << e;
    }
  }
}

TEST_F(GgufFamilyTest, RefusesExpertsThatAreNotThere) {
  const auto refuses = [&](const std::string& key, std::uint32_t value, std::vector<std::string> words) {
    GgufWriter w = mixture();
    w.remove("qwen3moe." + key);
    w.u32("qwen3moe." + key, value);
    words.push_back("x.gguf: ");
    testing::expect_error(ErrorCode::bad_input, words, [&] { load(w); });
  };
  refuses("expert_count", 4, {"'blk.0.ffn_gate_inp.weight'", "4 rows"});
  refuses("expert_count", 1 << 30, {"'blk.0.ffn_gate_inp.weight'"});
  refuses("expert_used_count", 4, {"'qwen3moe.expert_used_count'", "4 of 3"});
  refuses("expert_feed_forward_length", 64, {"'blk.0.ffn_gate_exps.weight'", "shape"});
  GgufWriter w = mixture();
  w.remove_tensor("blk.0.ffn_up_exps.weight");
  testing::expect_error(ErrorCode::bad_input, {"'blk.0.ffn_up_exps.weight'", "missing"}, [&] { load(w); });
}

// Rows of quantised blocks: nothing is copied.
TEST_F(GgufFamilyTest, PartsOfOneTensorAreItsRows) {
  testing::TinyLlama t;
  t.layers = 1;
  GgufWriter w = without_feed_forward("phi3", t);
  for (const char* piece : {"attn_q", "attn_k", "attn_v"}) w.remove_tensor(std::string("blk.0.") + piece + ".weight");
  const std::string qkv = random_weights(DType::q8_0, 64 * 128, 1), up = random_weights(DType::q8_0, 64 * 192, 2);
  w.tensor("blk.0.attn_qkv.weight", {64, 128}, DType::q8_0, qkv);
  w.tensor("blk.0.ffn_up.weight", {64, 192}, DType::q8_0, up);
  w.tensor("blk.0.ffn_down.weight", {96, 64}, DType::f32, random_weights(DType::f32, 96 * 64, 3));
  const Checkpoint checkpoint = load(w);
  const auto expect_rows = [&](const char* name, const std::string& stored, std::int64_t first, std::int64_t rows) {
    const Matrix& m = checkpoint.matrix(name);
    const std::int64_t row = row_bytes(DType::q8_0, 64);
    EXPECT_EQ(m.rows, rows);
    EXPECT_EQ(std::memcmp(m.data, stored.data() + first * row, static_cast<std::size_t>(rows * row)), 0) << name;
  };
  expect_rows("blk.0.attn_q.weight", qkv, 0, 64);
  expect_rows("blk.0.attn_k.weight", qkv, 64, 32);
  expect_rows("blk.0.attn_v.weight", qkv, 96, 32);
  expect_rows("blk.0.ffn_gate.weight", up, 0, 96);
  expect_rows("blk.0.ffn_up.weight", up, 96, 96);

  // A gate that is missing is not found in what is there, nor a factor in what does not use it.
  w.remove_tensor("blk.0.ffn_up.weight");
  w.tensor("blk.0.ffn_up.weight", {64, 96}, DType::q8_0, up.substr(0, up.size() / 2));
  testing::expect_error(ErrorCode::bad_input, {"'blk.0.ffn_gate.weight'", "missing"}, [&] { load(w); });
  w.f32("phi3.rope.scaling.attn_factor", 1.25f);
  w.remove_tensor("blk.0.ffn_up.weight");
  w.tensor("blk.0.ffn_up.weight", {64, 192}, DType::q8_0, up);
  testing::expect_error(ErrorCode::unsupported, {"'phi3.rope.scaling.attn_factor'"}, [&] { load(w); });
}

}  // namespace
}  // namespace regard
