// Files may say anything: a clear error that names the place, or what the file says.

#include <gtest/gtest.h>

#include <limits>

#include "support/errors.h"
#include "text/specs.h"
#include "text/tokenizer.h"

namespace regard {
namespace {

using testing::add_piece;
using testing::byte_level_spec;
using testing::sentencepiece_spec;
using Ids = std::vector<std::int32_t>;

void expect_refused(const TokenizerSpec& spec, const std::vector<std::string>& words) {
  testing::expect_error(ErrorCode::bad_input, words, [&] { Tokenizer{spec}; });
}

TEST(HostileSpec, Vocabulary) {
  TokenizerSpec empty;
  empty.pre = "gpt-2";
  expect_refused(empty, {"empty"});

  TokenizerSpec spec = byte_level_spec({});
  spec.pieces.push_back("");
  expect_refused(spec, {"256 token types", "257 pieces"});
  spec.types.clear();  // none at all is all normal
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.bytes(256), "");  // an empty piece is never found
  EXPECT_EQ(tokenizer.encode_ids("ab"), (Ids{'a', 'b'}));

  spec = sentencepiece_spec({"a"});
  spec.scores.pop_back();
  expect_refused(spec, {"259 scores", "260 pieces"});
  spec.scores.clear();
  expect_refused(spec, {"no scores"});
  spec = sentencepiece_spec({"a", "b"});
  spec.scores[260] = std::numeric_limits<float>::quiet_NaN();
  expect_refused(spec, {"score", "token 260", "'b'"});

  spec = byte_level_spec({});
  for (const int type : {0, 7, -1, 1 << 30}) {
    spec.types[17] = static_cast<TokenType>(type);
    expect_refused(spec, {"token 17", std::to_string(type)});
  }
}

TEST(HostileSpec, NamedTokens) {
  for (std::optional<std::int32_t> TokenizerSpec::*const named :
       {&TokenizerSpec::bos, &TokenizerSpec::eos, &TokenizerSpec::unknown, &TokenizerSpec::padding})
    for (const std::int32_t id :
         {-1, 256, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
      TokenizerSpec spec = byte_level_spec({});
      spec.*named = id;
      expect_refused(spec, {"id " + std::to_string(id), "256 pieces"});
    }
  TokenizerSpec spec = byte_level_spec({});
  spec.add_bos = true;
  expect_refused(spec, {"BOS"});
  spec.add_bos = false;
  spec.add_eos = true;
  expect_refused(spec, {"EOS"});
}

TEST(HostileSpec, Merges) {
  TokenizerSpec spec = byte_level_spec({{"a", "b"}});
  for (const auto& [merge, why] : std::vector<std::pair<std::string, std::string>>{{"", "two pieces"},
                                                                                   {"ab", "two pieces"},
                                                                                   {" b", "two pieces"},
                                                                                   {"a ", "two pieces"},
                                                                                   {" ", "two pieces"},
                                                                                   {"a c", "'ac' is not"},
                                                                                   {"a  b", "is not"},
                                                                                   {"a b c", "is not"},
                                                                                   {"x\u0423 b", "is not"}}) {
    spec.merges = {"a b", merge};
    expect_refused(spec, {"merge 1 ", why});
  }
  // The result is there, a part is not.
  add_piece(spec, testing::letters("xyz"), TokenType::normal);
  spec.merges = {"xy z"};
  expect_refused(spec, {"merge 0 'xy z'", "'xy' is not"});
}

TEST(HostileSpec, OfPiecesWrittenTheSameTheLaterOneCounts) {
  TokenizerSpec spec = byte_level_spec({{"a", "b"}});
  const std::int32_t again = add_piece(spec, "ab", TokenType::normal);
  const std::int32_t special = add_piece(spec, "ab", TokenType::control);
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode_ids("ab", {.parse_special = false, .add_special = false}), Ids{again});
  EXPECT_EQ(tokenizer.encode_ids("ab"), Ids{special});
  EXPECT_EQ(tokenizer.bytes(256), "ab");

  TokenizerSpec scored = sentencepiece_spec({"a", "b", "ab", "ab", "a"});
  EXPECT_EQ(Tokenizer(scored).encode_ids("aab"), (Ids{263, 262}));
}

TEST(HostileSpec, BytePieces) {
  for (const std::string piece : {"", "<0x4>", "<0x4g>", "<0X41>", "<0xff>", "A", "<0x411>"}) {
    TokenizerSpec spec = sentencepiece_spec({"a"});
    spec.pieces[3 + 0x41] = piece;
    expect_refused(spec, {"token 68", "<0x0A>"});
  }
}

TEST(HostileSpec, HugePieces) {
  TokenizerSpec spec = byte_level_spec({});
  const std::string huge(3 << 20, 'q');
  const std::int32_t id = add_piece(spec, huge, TokenType::normal);
  EXPECT_EQ(Tokenizer(spec).bytes(id), huge);
  add_piece(spec, huge, TokenType::control);
  expect_refused(spec, {"special token 257", "3145728 bytes"});
}

TEST(HostileSpec, PiecesThatAreNotUtf8) {
  TokenizerSpec spec = byte_level_spec({});
  const std::int32_t raw = add_piece(spec, "\xFF\xC3", TokenType::normal);
  const std::int32_t special = add_piece(spec, "<\xFF>", TokenType::control);
  const std::int32_t foreign = add_piece(spec, "\u6211a", TokenType::normal);  // not in GPT-2's letters
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.bytes(raw), "\xFF\xC3");
  EXPECT_EQ(tokenizer.bytes(foreign), "\u6211a");
  EXPECT_EQ(tokenizer.encode_ids("a<\xFF>"), (Ids{'a', special}));

  TokenizerSpec scored = sentencepiece_spec({"\xE2\x96", "\xE2\x96\x81\xE2", "a"});
  EXPECT_EQ(Tokenizer(scored).bytes(260), " \xE2");
  EXPECT_EQ(Tokenizer(scored).encode_ids("\xE2\x96"), Ids{259});  // two broken bytes that are a piece
}

TEST(HostileSpec, IdsOutOfRange) {
  const Tokenizer tokenizer(byte_level_spec({}));
  for (const std::int32_t id : {-1, 256, std::numeric_limits<std::int32_t>::min()}) {
    testing::expect_error(ErrorCode::bad_input, {std::to_string(id), "256 tokens"}, [&] { tokenizer.bytes(id); });
    const Ids ids{'a', id};
    testing::expect_error(ErrorCode::bad_input, {std::to_string(id)}, [&] { tokenizer.decode(ids); });
    EXPECT_FALSE(tokenizer.is_special(id));
    EXPECT_FALSE(tokenizer.ends_text(id));
  }
}

TEST(HostileSpec, RandomOnesEndInAnErrorOrATokenizer) {
  std::mt19937 rng(10);
  const auto below = [&](unsigned n) { return rng() % n; };
  int worked = 0;
  for (int round = 0; round < 3000; ++round) {
    TokenizerSpec spec = below(2) ? byte_level_spec({{"a", "b"}, {"ab", "c"}}, below(2) ? "qwen2" : "llama-bpe")
                                  : sentencepiece_spec({"a", "b", "\u2581", "ab", "\u2581a"});
    for (unsigned n = below(4); n > 0; --n) switch (below(8)) {
        case 0:
          spec.pieces[below(static_cast<unsigned>(spec.pieces.size()))] = testing::random_bytes(rng);
          break;
        case 1:
          spec.types[below(static_cast<unsigned>(spec.types.size()))] = static_cast<TokenType>(below(8));
          break;
        case 2:
          if (!spec.scores.empty()) spec.scores[below(static_cast<unsigned>(spec.scores.size()))] = 1e30f;
          break;
        case 3:
          spec.merges.push_back(testing::random_bytes(rng));
          break;
        case 4:
          spec.pieces.pop_back();
          break;
        case 5:
          spec.bos = static_cast<std::int32_t>(below(300)) - 10;
          spec.add_bos = true;
          break;
        case 6:
          spec.unknown.reset();
          break;
        default:
          spec.add_space_prefix = true;
      }
    try {
      const Tokenizer tokenizer(spec);
      for (int i = 0; i < 3; ++i) tokenizer.decode(tokenizer.encode_ids(testing::random_bytes(rng)));
      ++worked;
    } catch (const Error& error) {
      EXPECT_FALSE(error.message.empty());
    }
  }
  EXPECT_GT(worked, 500);
}

}  // namespace
}  // namespace regard
