#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "support/errors.h"
#include "text/normal_form.h"
#include "text/pretokenizer.h"
#include "text/specs.h"
#include "text/tokenizer.h"

namespace regard {
namespace {

using Ids = std::vector<std::int32_t>;

// The ranges of tokens follow one another from the first byte to the last.
void expect_tiles(const std::vector<Token>& tokens, std::string_view text) {
  std::int64_t at = 0;
  for (const Token& token : tokens) {
    ASSERT_EQ(token.begin, at);
    ASSERT_LT(token.begin, token.end);
    at = token.end;
  }
  ASSERT_EQ(at, static_cast<std::int64_t>(text.size()));
}

TEST(ByteLevel, MergesByRankThenFromTheLeft) {
  // 256 "ab", 257 "bc", 258 "abc", 259 "aa", 260 "aaaa"
  const Tokenizer tokenizer(testing::byte_level_spec({{"a", "b"}, {"b", "c"}, {"ab", "c"}, {"a", "a"}, {"aa", "aa"}}));
  EXPECT_EQ(tokenizer.encode_ids("abc"), (Ids{258}));
  EXPECT_EQ(tokenizer.encode_ids("bc"), (Ids{257}));
  EXPECT_EQ(tokenizer.encode_ids("aab"), (Ids{'a', 256}));
  EXPECT_EQ(tokenizer.encode_ids("aaa"), (Ids{259, 'a'}));
  EXPECT_EQ(tokenizer.encode_ids("aaaaaaa"), (Ids{260, 259, 'a'}));
  EXPECT_EQ(tokenizer.encode_ids("a bc"), (Ids{'a', ' ', 257}));  // no merge across words
  EXPECT_EQ(tokenizer.encode_ids(""), Ids{});
}

TEST(ByteLevel, TheFirstOfEqualMergesCounts) {
  TokenizerSpec spec = testing::byte_level_spec({{"a", "b"}, {"b", "c"}});
  spec.merges.push_back(spec.merges[0]);
  EXPECT_EQ(Tokenizer(spec).encode_ids("abc"), (Ids{256, 'c'}));
  std::swap(spec.merges[0], spec.merges[1]);
  EXPECT_EQ(Tokenizer(spec).encode_ids("abc"), (Ids{'a', 257}));
}

// The textbook's loop: look for the best pair among all neighbours, merge it, begin again.
Ids merged_plainly(std::string_view word, const std::map<std::pair<std::string, std::string>, int>& ranks,
                   const std::map<std::string, std::int32_t>& ids) {
  std::vector<std::string> parts;
  for (const char c : word) parts.emplace_back(1, c);
  for (;;) {
    int best = std::numeric_limits<int>::max();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto rank = ranks.find({parts[i], parts[i + 1]});
      if (rank != ranks.end() && rank->second < best) {
        best = rank->second;
        at = i;
      }
    }
    if (best == std::numeric_limits<int>::max()) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  Ids result;
  for (const std::string& part : parts) result.push_back(ids.at(part));
  return result;
}

TEST(ByteLevel, EqualsTheTextbookOnRandomVocabularies) {
  std::mt19937 rng(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> parts = {"a", "b", "c", "\xFF"};
    std::vector<std::pair<std::string, std::string>> merges;
    std::map<std::pair<std::string, std::string>, int> ranks;
    std::map<std::string, std::int32_t> ids;
    for (int byte = 0; byte < 256; ++byte) ids[std::string(1, static_cast<char>(byte))] = byte;
    for (int i = 0; i < 40; ++i) {
      const std::pair pair(parts[rng() % parts.size()], parts[rng() % parts.size()]);
      if ((pair.first + pair.second).size() > 9 || ranks.count(pair)) continue;
      ids[pair.first + pair.second] = 256 + static_cast<std::int32_t>(merges.size());  // the later of equals
      ranks[pair] = static_cast<int>(merges.size());
      merges.push_back(pair);
      parts.push_back(pair.first + pair.second);
    }
    const Tokenizer tokenizer(testing::byte_level_spec(merges));
    for (int i = 0; i < 60; ++i) {
      std::string word;
      for (unsigned n = rng() % 30; n > 0; --n) word += "abc"[rng() % 3];
      ASSERT_EQ(tokenizer.encode_ids(word), merged_plainly(word, ranks, ids)) << word;
    }
  }
}

TEST(ByteLevel, AnyBytesComeBack) {
  std::mt19937 rng(6);
  for (const char* pre : {"gpt-2", "smollm", "qwen2", "llama-bpe"}) {
    const Tokenizer tokenizer(
        testing::byte_level_spec({{"t", "h"}, {" ", "th"}, {"\xE4", "\xBD"}, {"\xC3", "\xA9"}, {"\n", "\n"}}, pre));
    for (int i = 0; i < 1500; ++i) {
      const std::string text = testing::random_bytes(rng);
      const std::vector<Token> tokens = tokenizer.encode(text);
      const auto normal = normalizes(pre) ? normal_form_c(text) : std::nullopt;
      EXPECT_EQ(tokenizer.decode(tokenizer.encode_ids(text)), normal ? normal->text() : text);
      if (normal) continue;
      expect_tiles(tokens, text);
      for (const Token& token : tokens)
        ASSERT_EQ(tokenizer.bytes(token.id), text.substr(static_cast<std::size_t>(token.begin),
                                                         static_cast<std::size_t>(token.end - token.begin)));
    }
  }
}

TEST(ByteLevel, RangesAreThoseOfTheTextBeforeNormalising) {
  const Tokenizer tokenizer(testing::byte_level_spec({{"\xC3", "\xA9"}}, "qwen2"));  // 256: e with acute
  const std::string text = "<e\u0301>\u212B";
  const std::vector<Token> tokens = tokenizer.encode(text);
  const auto is = [&](std::size_t i, std::int32_t id, std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(tokens[i].id, id);
    EXPECT_EQ(tokens[i].begin, begin);
    EXPECT_EQ(tokens[i].end, end);
  };
  ASSERT_EQ(tokens.size(), 5u);
  is(0, '<', 0, 1);
  is(1, 256, 1, 4);
  is(2, '>', 4, 5);
  is(3, 0xC3, 5, 8);  // both halves of the letter stand for the whole sign
  is(4, 0x85, 5, 8);
}

TEST(ByteLevel, Llama3TakesAWholeWordThatNoMergeMakes) {
  TokenizerSpec spec = testing::byte_level_spec({{"h", "e"}}, "llama-bpe");
  const std::int32_t whole = testing::add_piece(spec, testing::letters(" hello"), TokenType::normal);
  EXPECT_EQ(Tokenizer(spec).encode_ids("x hello"), (Ids{'x', whole}));
  EXPECT_EQ(Tokenizer(spec).encode_ids(" hellos").size(), 6u);
  spec.pre = "gpt-2";
  EXPECT_EQ(Tokenizer(spec).encode_ids("x hello"), (Ids{'x', ' ', 256, 'l', 'l', 'o'}));
}

TEST(ByteLevel, SpecialTokensAreReadAsWritten) {
  TokenizerSpec spec = testing::byte_level_spec({{"<", "|"}});
  const std::int32_t end = testing::add_piece(spec, "<|end|>", TokenType::control);
  const std::int32_t own = testing::add_piece(spec, "[tool use]", TokenType::user_defined);
  spec.bos = spec.eos = end;
  spec.add_bos = true;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode_ids("a<|end|>b"), (Ids{end, 'a', end, 'b'}));
  EXPECT_EQ(tokenizer.encode_ids("a<|end|>b", {.parse_special = false, .add_special = false}),
            (Ids{'a', 256, 'e', 'n', 'd', '|', '>', 'b'}));
  EXPECT_EQ(tokenizer.encode_ids("[tool use]", {.parse_special = false, .add_special = false}), Ids{own});
  EXPECT_EQ(tokenizer.bytes(end), "<|end|>");
  EXPECT_EQ(tokenizer.bytes(own), "[tool use]");
  EXPECT_TRUE(tokenizer.is_special(end));
  EXPECT_FALSE(tokenizer.is_special(own));
  EXPECT_TRUE(tokenizer.ends_text(end));
  const std::vector<Token> tokens = tokenizer.encode("a<|end|>");
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[0].begin, tokens[0].end);  // the added BOS stands for no bytes
  EXPECT_EQ(tokens[2].begin, 1);
  EXPECT_EQ(tokens[2].end, 8);
  EXPECT_EQ(tokenizer.encode_ids(""), Ids{end});
}

TEST(ByteLevel, BosAndEosAsTheFileSays) {
  TokenizerSpec spec = testing::byte_level_spec({});
  spec.bos = testing::add_piece(spec, "<s>", TokenType::control);
  spec.eos = testing::add_piece(spec, "</s>", TokenType::control);
  for (const bool bos : {false, true})
    for (const bool eos : {false, true}) {
      spec.add_bos = bos;
      spec.add_eos = eos;
      const Tokenizer tokenizer(spec);
      Ids expected{'x'};
      if (bos) expected.insert(expected.begin(), *spec.bos);
      if (eos) expected.push_back(*spec.eos);
      EXPECT_EQ(tokenizer.encode_ids("x"), expected);
      EXPECT_EQ(tokenizer.encode_ids("x", {.parse_special = true, .add_special = false}), Ids{'x'});
    }
}

TEST(ByteLevel, AByteWithoutATokenIsNamedWithItsPlace) {
  TokenizerSpec spec = testing::byte_level_spec({});
  spec.pieces[0xF1] = "unrelated";
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode_ids("ok"), (Ids{'o', 'k'}));
  testing::expect_error(ErrorCode::bad_input, {"0xF1", "byte 3 of the text"}, [&] { tokenizer.encode("a b\xF1"); });
  spec.pre = "qwen2";  // the place is that of the text before normalising
  testing::expect_error(ErrorCode::bad_input, {"0xF1", "byte 5 of the text"},
                        [&] { Tokenizer(spec).encode("e\u0301 b\xF1"); });
}

TEST(ByteLevel, EqualsHuggingFaceTokenizers) {
  std::ifstream file(REGARD_TEST_DATA "/text/peer_byte_level.json");
  const auto data = nlohmann::json::parse(file);
  int compared = 0;
  for (const auto& [pre, cases] : data["cases"].items()) {
    TokenizerSpec spec;
    spec.pre = pre;
    spec.pieces = data["pieces"].get<std::vector<std::string>>();
    spec.merges = data[pre == "llama-bpe" ? "merges_llama-bpe" : "merges"].get<std::vector<std::string>>();
    const Tokenizer tokenizer(spec);
    for (const auto& one : cases) {
      ASSERT_EQ(tokenizer.encode_ids(one["text"].get<std::string>()), one["ids"].get<Ids>()) << pre << one["text"];
      ++compared;
    }
  }
  EXPECT_EQ(compared, 600);
}

// A word of a megabyte, alike or random: more than n log n would not end.
TEST(ByteLevel, AMegabyteWithoutASpace) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (std::string half = "a"; half.size() < 100000; half += half) merges.emplace_back(half, half);
  merges.emplace_back("b", "c");
  const Tokenizer tokenizer(testing::byte_level_spec(merges));
  const std::string alike(std::size_t{1} << 20, 'a');
  EXPECT_EQ(tokenizer.encode(alike).size(), 8u);
  std::mt19937 rng(7);
  std::string mixed;
  for (int i = 0; i < 1 << 20; ++i) mixed += "abc"[rng() % 3];
  const std::vector<Token> tokens = tokenizer.encode(mixed);
  expect_tiles(tokens, mixed);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode_ids(mixed)), mixed);
}

}  // namespace
}  // namespace regard
