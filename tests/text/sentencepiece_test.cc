#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/errors.h"
#include "text/specs.h"
#include "text/tokenizer.h"

namespace regard {
namespace {

using Ids = std::vector<std::int32_t>;
using testing::sentencepiece_spec;

constexpr std::int32_t kFirst = 259;  // the id of the first piece
constexpr std::int32_t byte_id(int byte) { return 3 + byte; }

TEST(SentencePiece, MergesByScoreThenFromTheLeft) {
  // 259 "a", 260 "b", 261 "c", 262 "ab", 263 "bc", 264 "abc", 265 "aa"
  TokenizerSpec spec = sentencepiece_spec({"a", "b", "c", "ab", "bc", "abc", "aa"});
  EXPECT_EQ(Tokenizer(spec).encode_ids("abc"), (Ids{264}));
  EXPECT_EQ(Tokenizer(spec).encode_ids("aab"), (Ids{259, 262}));
  EXPECT_EQ(Tokenizer(spec).encode_ids("aaa"), (Ids{265, 259}));
  spec.scores[263] = 1;  // "bc" before "ab"
  spec.pieces[264] = "unreachable";
  EXPECT_EQ(Tokenizer(spec).encode_ids("abc"), (Ids{259, 263}));
  spec.scores[262] = 1;  // a tie goes to the left
  EXPECT_EQ(Tokenizer(spec).encode_ids("abc"), (Ids{262, 261}));
  spec.scores[262] = -0.0f;
  spec.scores[263] = 0.0f;  // equal numbers
  EXPECT_EQ(Tokenizer(spec).encode_ids("abc"), (Ids{262, 261}));
  spec.scores[262] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(Tokenizer(spec).encode_ids("abc"), (Ids{259, 263}));
}

TEST(SentencePiece, WhatIsNoPieceFallsBackToBytes) {
  const Tokenizer tokenizer(sentencepiece_spec({"a", "\u2581", "\u2581a"}));
  EXPECT_EQ(tokenizer.encode_ids("a\u00E9 a"), (Ids{kFirst, byte_id(0xC3), byte_id(0xA9), kFirst + 2}));
  EXPECT_EQ(tokenizer.encode_ids("\xFFz"), (Ids{byte_id(0xFF), byte_id('z')}));
  EXPECT_EQ(tokenizer.bytes(byte_id(0xC3)), "\xC3");
  EXPECT_EQ(tokenizer.bytes(kFirst + 2), " a");
  const std::vector<Token> tokens = tokenizer.encode("a\u00E9 a");
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[1].begin, 1);
  EXPECT_EQ(tokens[1].end, 2);
  EXPECT_EQ(tokens[2].end, 3);
  EXPECT_EQ(tokens[3].end, 5);
}

TEST(SentencePiece, WithoutBytesTheUnknownTokenStandsForACharacter) {
  TokenizerSpec spec = sentencepiece_spec({"a"});
  spec.types[byte_id(0xA9)] = TokenType::unused;  // one byte of the letter is missing
  EXPECT_EQ(Tokenizer(spec).encode_ids("a\u00E9z"), (Ids{kFirst, 0, byte_id('z')}));
  spec.unknown.reset();
  testing::expect_error(ErrorCode::bad_input, {"byte 1 of the text"}, [&] { Tokenizer(spec).encode("a\u00E9z"); });
  spec.add_space_prefix = true;  // the added space is no byte of the text
  testing::expect_error(ErrorCode::bad_input, {"byte 1 of the text"}, [&] { Tokenizer(spec).encode("a\u00E9z"); });
}

TEST(SentencePiece, ASpaceBeforeTheTextWhereTheFileAsksForIt) {
  TokenizerSpec spec = sentencepiece_spec({"\u2581", "a", "\u2581a", "b"});
  spec.add_bos = true;
  EXPECT_EQ(Tokenizer(spec).encode_ids("a b"), (Ids{1, 260, 259, 262}));
  spec.add_space_prefix = true;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode_ids("a b"), (Ids{1, 261, 259, 262}));
  EXPECT_EQ(tokenizer.encode_ids("a</s>a"), (Ids{1, 261, 2, 261}));  // also behind a special token
  EXPECT_EQ(tokenizer.encode_ids(""), Ids{1});
  const std::vector<Token> tokens = tokenizer.encode("a b");
  EXPECT_EQ(tokens[1].begin, 0);  // the added space has no bytes
  EXPECT_EQ(tokens[1].end, 1);
  EXPECT_EQ(tokens[2].begin, 1);
}

TEST(SentencePiece, SpacesAreMergedAcrossWordsWhereAPieceSaysSo) {
  const std::vector<std::string> pieces = {"\u2581", "a", "b", "a\u2581", "a\u2581b", "\u2581\u2581"};
  const Tokenizer tokenizer(sentencepiece_spec(pieces));
  EXPECT_EQ(tokenizer.encode_ids("a b"), (Ids{263}));
  EXPECT_EQ(tokenizer.encode_ids("b  a"), (Ids{261, 264, 260}));
  EXPECT_EQ(tokenizer.encode_ids("b b"), (Ids{261, 259, 261}));
}

TEST(SentencePiece, ATextsOwnBlockIsASpace) {
  const Tokenizer tokenizer(sentencepiece_spec({"\u2581", "a", "\u2581a"}));
  EXPECT_EQ(tokenizer.encode_ids("a\u2581a"), (Ids{260, 261}));
  const std::vector<Token> tokens = tokenizer.encode("a\u2581a");
  EXPECT_EQ(tokens[1].begin, 1);
  EXPECT_EQ(tokens[1].end, 5);
}

TEST(SentencePiece, UserDefinedPiecesComeFirst) {
  TokenizerSpec spec = sentencepiece_spec({"a", "b", "ab", "\u2581"});
  const std::int32_t two = testing::add_piece(spec, "  ", TokenType::user_defined);
  const std::int32_t three = testing::add_piece(spec, "\u2581\u2581\u2581", TokenType::user_defined);
  const std::int32_t tag = testing::add_piece(spec, "<b>", TokenType::user_defined);
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode_ids("a  b", {.parse_special = false, .add_special = true}), (Ids{259, two, 260}));
  EXPECT_EQ(tokenizer.encode_ids("     "), (Ids{three, two}));
  EXPECT_EQ(tokenizer.encode_ids("a<b>b"), (Ids{259, tag, 260}));
  EXPECT_EQ(tokenizer.bytes(two), "  ");
  EXPECT_EQ(tokenizer.bytes(three), "   ");
}

// Text that merely spells a control token or a byte must not become one: it would be no text any more.
TEST(SentencePiece, PlainTextNeverBecomesAControlTokenOrAByte) {
  const std::vector<std::string> pieces = {"<", "s", ">",   "<s", "0",   "x", "<0",
                                           "4", "1", "<0x", "41", "41>", "/", "</"};
  const Tokenizer tokenizer(sentencepiece_spec(pieces));
  for (const std::string text : {"<s>", "</s>", "<unk>", "<0x41>"}) {
    const Ids ids = tokenizer.encode_ids(text, {.parse_special = false, .add_special = false});
    EXPECT_GT(ids.size(), 1u) << text;
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
  EXPECT_EQ(tokenizer.encode_ids("<s>"), Ids{1});
}

TEST(SentencePiece, AnyBytesComeBack) {
  std::mt19937 rng(8);
  const Tokenizer tokenizer(
      sentencepiece_spec({"a", "e", "\u2581", "\u2581a", "\u00E9", "ae", "\u2581\u2581", "\u2581ae"}));
  for (int i = 0; i < 3000; ++i) {
    const std::string text = testing::random_bytes(rng);
    if (text.find("\u2581") != std::string::npos) continue;
    const std::vector<Token> tokens = tokenizer.encode(text);
    std::int64_t at = 0;
    for (const Token& token : tokens) {
      ASSERT_EQ(token.begin, at);
      ASSERT_EQ(tokenizer.bytes(token.id),
                text.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(token.end - token.begin)));
      at = token.end;
    }
    ASSERT_EQ(at, static_cast<std::int64_t>(text.size()));
  }
}

TEST(SentencePiece, EqualsSentencePiece) {
  std::ifstream file(REGARD_TEST_DATA "/text/peer_sentencepiece.json");
  int compared = 0;
  for (const auto& data : nlohmann::json::parse(file)) {
    TokenizerSpec spec;
    spec.kind = TokenizerSpec::Kind::sentencepiece_bpe;
    spec.pieces = data["pieces"].get<std::vector<std::string>>();
    spec.scores = data["scores"].get<std::vector<float>>();
    for (const int type : data["types"]) spec.types.push_back(static_cast<TokenType>(type));
    spec.add_space_prefix = data["add_space_prefix"];
    spec.unknown = 0;
    const Tokenizer tokenizer(spec);
    for (const auto& one : data["cases"]) {
      ASSERT_EQ(tokenizer.encode_ids(one["text"].get<std::string>()), one["ids"].get<Ids>()) << one["text"];
      ++compared;
    }
  }
  EXPECT_EQ(compared, 300);
}

// A text of a megabyte without a space, and pieces as long as half of it.
TEST(SentencePiece, LongTextsAndLongPieces) {
  std::vector<std::string> pieces = {"\u2581", "b"};
  for (std::string piece = "a"; piece.size() <= std::size_t{1} << 19; piece += piece) pieces.push_back(piece);
  const Tokenizer tokenizer(sentencepiece_spec(pieces));
  EXPECT_EQ(tokenizer.encode(std::string(std::size_t{1} << 20, 'a')).size(), 2u);
  EXPECT_EQ(tokenizer.encode(std::string(std::size_t{1} << 20, ' ')).size(), std::size_t{1} << 20);
  std::mt19937 rng(9);
  std::string mixed;
  for (int i = 0; i < 1 << 19; ++i) mixed += "aab"[rng() % 3];
  EXPECT_EQ(tokenizer.decode(tokenizer.encode_ids(mixed)), mixed);
}

}  // namespace
}  // namespace regard
