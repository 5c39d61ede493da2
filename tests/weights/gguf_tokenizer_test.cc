#include "weights/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "support/tiny_llama.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace regard {
namespace {

using testing::expect_error;
using testing::GgufWriter;

GgufWriter byte_level() {
  GgufWriter w;
  w.string("general.architecture", "any");
  w.string("tokenizer.ggml.model", "gpt2");
  w.string("tokenizer.ggml.pre", "smollm");
  w.strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<end>"});
  w.i32s("tokenizer.ggml.token_type", {1, 1, 4, 3});
  w.strings("tokenizer.ggml.merges", {"a b"});
  return w;
}

GgufWriter sentencepiece() {
  GgufWriter w;
  w.string("tokenizer.ggml.model", "llama");
  w.strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x41>"});
  w.f32s("tokenizer.ggml.scores", {0, 0, 0, -1.5f});
  w.i32s("tokenizer.ggml.token_type", {2, 3, 3, 6});
  return w;
}

class GgufTokenizer : public ::testing::Test {
 protected:
  TokenizerSpec load(const GgufWriter& w) {
    w.write(folder / "x.gguf");
    return load_tokenizer(folder / "x.gguf");
  }
  void refuses(GgufWriter w, const std::function<void(GgufWriter&)>& spoil, std::vector<std::string> words,
               ErrorCode code = ErrorCode::bad_input) {
    spoil(w);
    words.push_back("x.gguf: ");
    expect_error(code, words, [&] { load(w); });
  }
  const testing::TempFolder folder;
};

TEST_F(GgufTokenizer, ByteLevel) {
  GgufWriter w = byte_level();
  TokenizerSpec spec = load(w);
  EXPECT_EQ(spec.kind, TokenizerSpec::Kind::byte_level_bpe);
  EXPECT_EQ(spec.pre, "smollm");
  EXPECT_EQ(spec.pieces, (std::vector<std::string>{"a", "b", "ab", "<end>"}));
  EXPECT_EQ(spec.types, (std::vector<TokenType>{TokenType::normal, TokenType::normal, TokenType::user_defined,
                                                TokenType::control}));
  EXPECT_EQ(spec.merges, (std::vector<std::string>{"a b"}));
  EXPECT_TRUE(spec.scores.empty());
  EXPECT_FALSE(spec.add_bos || spec.add_eos || spec.add_space_prefix);
  EXPECT_FALSE(spec.bos || spec.eos || spec.unknown || spec.padding);
  EXPECT_EQ(spec.chat_template, "");

  w.u32("tokenizer.ggml.bos_token_id", 0);
  w.u32("tokenizer.ggml.eos_token_id", 3);
  w.u32("tokenizer.ggml.unknown_token_id", 1);
  w.u64("tokenizer.ggml.padding_token_id", 2);
  w.boolean("tokenizer.ggml.add_bos_token", true);
  w.boolean("tokenizer.ggml.add_eos_token", true);
  w.string("tokenizer.chat_template", "{% for %}");
  spec = load(w);
  EXPECT_EQ(spec.bos, 0);
  EXPECT_EQ(spec.eos, 3);
  EXPECT_EQ(spec.unknown, 1);
  EXPECT_EQ(spec.padding, 2);
  EXPECT_TRUE(spec.add_bos && spec.add_eos);
  EXPECT_EQ(spec.chat_template, "{% for %}");

  w.remove("tokenizer.ggml.token_type");
  w.remove("tokenizer.ggml.add_bos_token");
  w.remove("tokenizer.ggml.pre");
  EXPECT_TRUE(load(w).types.empty());
  EXPECT_FALSE(load(w).add_bos);
  EXPECT_EQ(load(w).pre, "");
  w.string("tokenizer.ggml.pre", "llama-bpe");
  EXPECT_TRUE(load(w).add_bos);  // silent Llama 3 files mean it
}

TEST_F(GgufTokenizer, SentencePiece) {
  GgufWriter w = sentencepiece();
  TokenizerSpec spec = load(w);
  EXPECT_EQ(spec.kind, TokenizerSpec::Kind::sentencepiece_bpe);
  EXPECT_EQ(spec.scores, (std::vector<float>{0, 0, 0, -1.5f}));
  EXPECT_EQ(spec.types[3], TokenType::byte);
  EXPECT_TRUE(spec.merges.empty());
  // what a silent file means
  EXPECT_TRUE(spec.add_bos && spec.add_space_prefix && !spec.add_eos);
  EXPECT_EQ(spec.unknown, 0);
  EXPECT_EQ(spec.bos, 1);
  EXPECT_EQ(spec.eos, 2);
  EXPECT_FALSE(spec.padding);

  w.boolean("tokenizer.ggml.add_bos_token", false);
  w.boolean("tokenizer.ggml.add_space_prefix", false);
  w.u32("tokenizer.ggml.bos_token_id", 2);
  w.boolean("tokenizer.ggml.remove_extra_whitespaces", false);
  w.array("tokenizer.ggml.precompiled_charsmap", 0, 0, "");
  spec = load(w);
  EXPECT_FALSE(spec.add_bos || spec.add_space_prefix);
  EXPECT_EQ(spec.bos, 2);
}

// "bert" writes words with U+2581 and what goes on in a word without a mark.
TEST_F(GgufTokenizer, WordPiece) {
  GgufWriter w;
  w.string("tokenizer.ggml.model", "bert");
  w.strings("tokenizer.ggml.tokens", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581un", "able", "\u2581able", "\u2581!"});
  w.i32s("tokenizer.ggml.token_type", {3, 2, 3, 3, 1, 1, 1, 1});
  w.u32("tokenizer.ggml.cls_token_id", 2);
  w.u32("tokenizer.ggml.seperator_token_id", 3);
  w.u32("tokenizer.ggml.unknown_token_id", 1);
  const Tokenizer tokenizer(load(w));
  EXPECT_EQ(tokenizer.encode_ids("Un\u00E2ble  able! x"), (std::vector<std::int32_t>{2, 4, 5, 6, 7, 1, 3}));
  EXPECT_EQ(tokenizer.classification(), 2);
  EXPECT_EQ(tokenizer.separator(), 3);
  EXPECT_EQ(tokenizer.padding(), 0);
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{4, 5, 7}), "unable !");
  w.boolean("tokenizer.ggml.add_bos_token", false);
  w.boolean("tokenizer.ggml.add_sep_token", false);
  EXPECT_EQ(Tokenizer(load(w)).encode_ids("able"), std::vector<std::int32_t>{6});
  // A piece with a capital letter: texts are not lowered.
  w.remove("tokenizer.ggml.tokens");
  w.strings("tokenizer.ggml.tokens", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581Un", "able", "\u2581able", "\u2581!"});
  EXPECT_EQ(Tokenizer(load(w)).encode_ids("Unable unable"), (std::vector<std::int32_t>{4, 5, 1}));
}

TEST_F(GgufTokenizer, Unigram) {
  GgufWriter w;
  w.string("tokenizer.ggml.model", "t5");
  w.strings("tokenizer.ggml.tokens", {"<pad>", "</s>", "<unk>", "\u2581", "a", "b", "ab", "\u2581ab"});
  w.f32s("tokenizer.ggml.scores", {0, 0, 0, -2, -3, -3, -5, -9});
  w.i32s("tokenizer.ggml.token_type", {3, 3, 2, 1, 1, 1, 1, 1});
  // Two units and one text: a map that has no entry.
  w.array("tokenizer.ggml.precompiled_charsmap", 0, 14, std::string("\x08\0\0\0\0\0\0\0\0\0\0\0x\0", 14));
  EXPECT_EQ(Tokenizer(load(w)).encode_ids("ab  ba\u6211\u6211"), (std::vector<std::int32_t>{3, 6, 3, 3, 5, 4, 2, 1}));
  w.boolean("tokenizer.ggml.remove_extra_whitespaces", true);
  w.boolean("tokenizer.ggml.add_eos_token", false);
  EXPECT_EQ(Tokenizer(load(w)).encode_ids(" ab  b "), (std::vector<std::int32_t>{3, 6, 3, 5}));
  w.remove("tokenizer.ggml.precompiled_charsmap");
  w.array("tokenizer.ggml.precompiled_charsmap", 0, 3, "abc");
  expect_error(ErrorCode::bad_input, {"charsmap"}, [&] { Tokenizer{load(w)}; });
}

TEST_F(GgufTokenizer, RefusesKindsItCannotRun) {
  for (const char* kind : {"rwkv", "plamo2", "none", ""})
    refuses(
        byte_level(),
        [&](GgufWriter& w) {
          w.remove("tokenizer.ggml.model");
          w.string("tokenizer.ggml.model", kind);
        },
        {"tokenizer", std::string("'") + kind + "'"}, ErrorCode::unsupported);
  refuses(byte_level(), [](GgufWriter& w) { w.remove("tokenizer.ggml.model"); }, {"'tokenizer.ggml.model'", "missing"});
  refuses(
      sentencepiece(), [](GgufWriter& w) { w.boolean("tokenizer.ggml.remove_extra_whitespaces", true); },
      {"remove_extra_whitespaces"}, ErrorCode::unsupported);
  refuses(
      sentencepiece(), [](GgufWriter& w) { w.array("tokenizer.ggml.precompiled_charsmap", 0, 3, "abc"); },
      {"precompiled_charsmap"}, ErrorCode::unsupported);
}

TEST_F(GgufTokenizer, RefusesListsThatDoNotFit) {
  const std::string tokens = "tokenizer.ggml.tokens", types = "tokenizer.ggml.token_type",
                    scores = "tokenizer.ggml.scores";
  refuses(byte_level(), [&](GgufWriter& w) { w.remove(tokens); }, {"'tokenizer.ggml.tokens'", "missing"});
  refuses(byte_level(),
          [&](GgufWriter& w) {
            w.remove(tokens);
            w.i32s(tokens, {1, 2, 3, 4});
          },
          {"not a list of strings"});
  refuses(byte_level(), [](GgufWriter& w) { w.remove("tokenizer.ggml.merges"); },
          {"'tokenizer.ggml.merges'", "missing"});
  refuses(byte_level(),
          [&](GgufWriter& w) {
            w.remove(types);
            w.i32s(types, {1, 1, 1});
          },
          {"3 elements", "4 tokens"});
  refuses(byte_level(),
          [&](GgufWriter& w) {
            w.remove(types);
            w.i32s(types, {1, 1, 7, 1});
          },
          {"token 2", "unknown type 7"});
  refuses(byte_level(),
          [&](GgufWriter& w) {
            w.remove(types);
            w.i32s(types, {1, 0, 1, 1});
          },
          {"token 1", "unknown type 0"});
  refuses(byte_level(),
          [&](GgufWriter& w) {
            w.remove(types);
            w.f32s(types, {1, 1, 1, 1});
          },
          {"token_type'", "integers"});
  refuses(byte_level(), [&](GgufWriter& w) { w.f32s(scores, {1}); }, {"1 elements", "4 tokens"});
  refuses(sentencepiece(), [&](GgufWriter& w) { w.remove(scores); }, {"'tokenizer.ggml.scores'", "missing"});
  refuses(sentencepiece(),
          [&](GgufWriter& w) {
            w.remove(scores);
            w.strings(scores, {"", "", "", ""});
          },
          {"not numbers"});
}

TEST_F(GgufTokenizer, RefusesIdsPastTheVocabulary) {
  for (const char* which : {"bos", "eos", "unknown", "padding"}) {
    const std::string key = std::string("tokenizer.ggml.") + which + "_token_id";
    refuses(byte_level(), [&](GgufWriter& w) { w.u32(key, 4); }, {"'" + key + "'", "4", "go to 3"});
    refuses(byte_level(), [&](GgufWriter& w) { w.u32(key, 0xffffffff); }, {"'" + key + "'"});
    refuses(byte_level(), [&](GgufWriter& w) { w.i32(key, -1); }, {"'" + key + "'", "-1"});
    refuses(byte_level(), [&](GgufWriter& w) { w.u64(key, std::uint64_t{1} << 32); }, {"'" + key + "'"});
  }
  refuses(byte_level(), [](GgufWriter& w) { w.boolean("tokenizer.ggml.add_bos_token", true); },
          {"BOS", "bos_token_id", "missing"});
  refuses(byte_level(), [](GgufWriter& w) { w.boolean("tokenizer.ggml.add_eos_token", true); },
          {"EOS", "eos_token_id", "missing"});
}

}  // namespace
}  // namespace regard
