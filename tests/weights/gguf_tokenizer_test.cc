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

// Files name one EOS; a turn ends with another token, told by a key or by how it is written.
TEST_F(GgufTokenizer, WhatEndsAText) {
  const auto ends = [&](std::vector<std::string> pieces, const std::function<void(GgufWriter&)>& more) {
    GgufWriter w;
    w.string("tokenizer.ggml.model", "gpt2");
    w.string("tokenizer.ggml.pre", "gpt-2");
    w.strings("tokenizer.ggml.merges", std::vector<std::string>{});
    w.strings("tokenizer.ggml.tokens", pieces);
    w.u32("tokenizer.ggml.eos_token_id", 0);
    more(w);
    const Tokenizer tokenizer(load(w));
    std::vector<std::string> found;
    for (std::size_t id = 0; id < pieces.size(); ++id)
      if (tokenizer.ends_text(static_cast<std::int32_t>(id))) found.push_back(pieces[id]);
    return found;
  };
  using Pieces = std::vector<std::string>;
  const auto nothing = [](GgufWriter&) {};
  EXPECT_EQ(ends({"<eos>", "<end_of_turn>", "x"}, nothing), (Pieces{"<eos>", "<end_of_turn>"}));
  EXPECT_EQ(ends({"<|endoftext|>", "<|end|>", "<|user|>"}, nothing), (Pieces{"<|endoftext|>", "<|end|>"}));
  EXPECT_EQ(ends({"<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>"}, nothing).size(), 4u);
  EXPECT_EQ(ends({"e", "x", "y", "z"},
                 [](GgufWriter& w) {
                   w.u32("tokenizer.ggml.eot_token_id", 2);
                   w.u32("tokenizer.ggml.eom_token_id", 3);
                 }),
            (Pieces{"e", "y", "z"}));
  // gpt-oss: the end of one message of several is none of the text.
  EXPECT_EQ(ends({"<|return|>", "<|call|>", "<|end|>", "<|endoftext|>"}, nothing),
            (Pieces{"<|return|>", "<|call|>", "<|endoftext|>"}));
}

// Told by the model's name, as llama.cpp does.
TEST_F(GgufTokenizer, TokensOfPhi3TakeWhiteSpaceAlong) {
  for (const char* name : {"Phi3", "Microsoft Phi-3-mini-4k", "Phi 4 mini"}) {
    GgufWriter w;
    w.string("general.name", name);
    w.string("tokenizer.ggml.model", "llama");
    w.strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<|endoftext|>", "<|user|>", "\u2581", "a", "<0x0A>"});
    w.f32s("tokenizer.ggml.scores", {0, 0, 0, 0, 0, -1, -2, -3});
    w.i32s("tokenizer.ggml.token_type", {2, 3, 4, 3, 4, 1, 1, 6});
    w.boolean("tokenizer.ggml.add_space_prefix", false);
    w.boolean("tokenizer.ggml.add_bos_token", false);
    const Tokenizer tokenizer(load(w));
    const bool strips = name[3] != ' ';
    using Ids = std::vector<std::int32_t>;
    EXPECT_EQ(tokenizer.encode_ids("<|user|>\n a"), strips ? (Ids{4, 6}) : (Ids{4, 7, 5, 6})) << name;
    EXPECT_EQ(tokenizer.encode_ids("</s>\n a"), strips ? (Ids{2, 6}) : (Ids{2, 7, 5, 6})) << name;
    EXPECT_EQ(tokenizer.encode_ids("<|endoftext|>\n a"), (Ids{3, 7, 5, 6})) << name;
  }
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

// -1, or the first id past the end: how files say that there is none.
TEST_F(GgufTokenizer, IdsPastTheVocabularyAreNobodys) {
  for (const char* which : {"bos", "eos", "unknown", "padding", "eot", "eom"}) {
    const std::string key = std::string("tokenizer.ggml.") + which + "_token_id";
    const auto none = [&](const auto& set) {
      GgufWriter w = byte_level();
      set(w);
      const TokenizerSpec spec = load(w);
      EXPECT_EQ(std::tie(spec.bos, spec.eos, spec.unknown, spec.padding),
                std::tuple(std::nullopt, std::nullopt, std::nullopt, std::nullopt));
      EXPECT_EQ(spec.ends, std::vector<std::int32_t>());
    };
    none([&](GgufWriter& w) { w.u32(key, 4); });
    none([&](GgufWriter& w) { w.u32(key, 0xffffffff); });
    none([&](GgufWriter& w) { w.i32(key, -1); });
    none([&](GgufWriter& w) { w.u64(key, std::uint64_t{1} << 32); });
  }
}

TEST_F(GgufTokenizer, WhatIsToBeAddedMustBeThere) {
  refuses(byte_level(), [](GgufWriter& w) { w.boolean("tokenizer.ggml.add_bos_token", true); },
          {"BOS", "bos_token_id", "missing"});
  refuses(byte_level(), [](GgufWriter& w) { w.boolean("tokenizer.ggml.add_eos_token", true); },
          {"EOS", "eos_token_id", "missing"});
}

}  // namespace
}  // namespace regard
