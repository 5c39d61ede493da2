// The real files, where they are (support/models.h).

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "support/errors.h"
#include "support/models.h"
#include "weights/catalogue.h"
#include "weights/checkpoint.h"
#include "weights/sha256.h"

namespace regard {
namespace {

TEST(RealFiles, SmolLM2) {
  const std::filesystem::path path = testing::real_model("smollm2");
  if (path.empty()) GTEST_SKIP() << "the file is not here: ./check fetches it";
  const auto start = std::chrono::steady_clock::now();
  const Checkpoint checkpoint = load_checkpoint(path);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));

  const ModelConfig& c = checkpoint.config;
  EXPECT_EQ(c.layers, 30);
  EXPECT_EQ(c.heads, 9);
  EXPECT_EQ(c.kv_heads, 3);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_EQ(c.width, 576);
  EXPECT_EQ(c.hidden, 1536);
  EXPECT_EQ(c.vocabulary, 49152);
  EXPECT_EQ(c.context, 8192);
  EXPECT_EQ(c.norm_epsilon, 1e-5f);
  EXPECT_EQ(c.rotary_global.base, 100000);
  EXPECT_EQ(c.attention_scale, 0.125f);
  EXPECT_TRUE(c.tied_head);
  EXPECT_EQ(checkpoint.matrices.size(), 272u);
  EXPECT_EQ(checkpoint.bytes, 98362432);
  EXPECT_EQ(checkpoint.stored.at(DType::q4_1).tensors, 210);
  EXPECT_EQ(checkpoint.stored.at(DType::q8_0).bytes, 30081024);
  EXPECT_EQ(checkpoint.tokenizer.pieces.size(), 49152u);
  EXPECT_EQ(checkpoint.tokenizer.merges.size(), 48900u);
  EXPECT_EQ(checkpoint.tokenizer.pre, "smollm");
  EXPECT_EQ(checkpoint.tokenizer.bos, 1);
  EXPECT_EQ(checkpoint.tokenizer.eos, 2);
  EXPECT_FALSE(checkpoint.tokenizer.add_bos);
  EXPECT_EQ(sha256_of_file(path), find_named_model("smollm2")->files[0].sha256);
}

TEST(RealFiles, Gemma3) {
  const std::filesystem::path path = testing::real_model("gemma3-270m");
  if (path.empty()) GTEST_SKIP() << "the file is not here: ./check fetches it";
  const TokenizerSpec spec = load_tokenizer(path);
  EXPECT_EQ(spec.kind, TokenizerSpec::Kind::sentencepiece_bpe);
  EXPECT_EQ(spec.pieces.size(), 262144u);
  EXPECT_EQ(spec.bos, 2);
  EXPECT_TRUE(spec.add_bos);
  EXPECT_FALSE(spec.add_space_prefix);
  const ModelConfig c = load_checkpoint(path).config;
  EXPECT_EQ(c.family, "gemma3");
  EXPECT_EQ(c.layers, 18);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.kv_heads, 1);
  EXPECT_EQ(c.head_dim, 256);
  EXPECT_EQ(c.attention_scale, 0.0625f);
  EXPECT_EQ(c.rotary_global.base, 1e6);
  EXPECT_EQ(c.rotary_local.base, 1e4);
  for (std::int64_t l = 0; l < c.layers; ++l) EXPECT_EQ(c.window[l], l % 6 == 5 ? 0 : 512);
  EXPECT_EQ(sha256_of_file(path), find_named_model("gemma3-270m")->files[0].sha256);
}

// What `regard models` says of each of them.
TEST(RealFiles, TheCatalogueSaysWhichCanBeRun) {
  int looked_at = 0;
  for (const NamedModel& model : catalogue()) {
    const std::filesystem::path path = testing::real_model(model.name);
    if (path.empty()) continue;
    EXPECT_EQ(model.runs, !testing::error_of([&] { load_checkpoint(path); })) << model.name;
    ++looked_at;
  }
  if (looked_at == 0) GTEST_SKIP() << "no model is here: ./check fetches them";
}

}  // namespace
}  // namespace regard
