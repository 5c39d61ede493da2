// Tokenizer files that are cut, altered or not honest: a clear error or a tokenizer, never a crash, and no trap.

#include <gtest/gtest.h>

#include <chrono>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "text/tokenizer.h"
#include "weights/folder_tokenizer.h"

namespace regard {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::read_file;
using testing::TempFolder;
using testing::write_file;

const fs::path kTokenizers = REGARD_TEST_DATA "/tokenizers";

// All kinds of steps in one file.
constexpr const char* kSmall = R"({"added_tokens":[{"id":9,"content":"<s>","single_word":false,"lstrip":true,
"rstrip":true,"normalized":false,"special":true},{"id":10,"content":"Bc","single_word":true,"normalized":true}],
"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Lowercase"},{"type":"Replace","pattern":
{"Regex":"\\d+"},"content":"#"},{"type":"Replace","pattern":{"String":" "},"content":"_"},{"type":"Prepend",
"prepend":"_"},{"type":"Strip","strip_left":true,"strip_right":true}]},"pre_tokenizer":{"type":"Sequence",
"pretokenizers":[{"type":"Split","pattern":{"Regex":"[^\\s]b|c"},"behavior":"MergedWithNext","invert":false},
{"type":"Digits","individual_digits":true},{"type":"Metaspace","replacement":"_","prepend_scheme":"first"}]},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":
{"id":"A","type_id":0}}],"special_tokens":{"<s>":{"ids":[9]}}},"decoder":{"type":"Metaspace","replacement":"_"},
"model":{"type":"BPE","unk_token":"u","fuse_unk":true,"byte_fallback":true,"vocab":{"_":0,"a":1,"b":2,"ab":3,"u":4,
"<0x41>":5,"#":6,"_ab":7,"c":8},"merges":[["a","b"],["_","ab"]]}})";

constexpr const char* kUnigram = R"({"normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAB4AA=="},
"pre_tokenizer":{"type":"Metaspace","replacement":"_","add_prefix_space":true},"model":{"type":"Unigram","unk_id":0,
"vocab":[["u",0],["_",-1.5],["a",-2],["b",-2.5],["ab",-3e0],["_ab",-4]]}})";

const std::string kTexts[] = {"ab Bc <s> a12b\xFF\xC3", "", "\u00E9\uFF21\u212B _\u6211", std::string(300, 'a')};

class TokenizerDamage : public ::testing::Test {
 protected:
  // Whether it still is a tokenizer.
  bool works() {
    try {
      const Tokenizer tokenizer(tokenizer_from_folder(folder.path()));
      for (const std::string& text : kTexts) tokenizer.decode(tokenizer.encode_ids(text));
      return true;
    } catch (const Error& error) {
      EXPECT_FALSE(error.message.empty());
      EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
      return false;
    }
  }

  // The file cut at every byte, and with every byte altered.
  void damage(const std::string& name, bool whole_is_valid_only) {
    const std::string whole = read_file(folder / name);
    ASSERT_TRUE(works());
    for (std::size_t n = 0; n < whole.size(); ++n) {
      write_file(folder / name, whole.substr(0, n));
      EXPECT_FALSE(works() && whole_is_valid_only) << n;
    }
    std::mt19937 rng(12);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string altered = whole;
      altered[at] = static_cast<char>(altered[at] ^ (1 + rng() % 255));
      write_file(folder / name, altered);
      works();
    }
  }

  const TempFolder folder;
};

TEST_F(TokenizerDamage, TokenizerJson) {
  write_file(folder / "tokenizer.json", kSmall);
  damage("tokenizer.json", true);
}

TEST_F(TokenizerDamage, UnigramWithACharsmap) {
  write_file(folder / "tokenizer.json", kUnigram);
  damage("tokenizer.json", true);
}

// A field of a protocol buffer: its number with wire type 2, and its bytes.
std::string field(int number, const std::string& bytes) {
  std::string message(1, static_cast<char>(number << 3 | 2));
  message.push_back(static_cast<char>(bytes.size()));
  return message + bytes;
}

TEST_F(TokenizerDamage, SentencePieceModel) {
  write_file(folder / "tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  for (const char model_type : {1, 2}) {
    const auto piece = [](const std::string& text, const char score, const char type) {
      return field(1, field(1, text) + std::string("\x15\0\0", 3) + score + '\xC0' + '\x18' + type);
    };
    const std::string charsmap("\x08\0\0\0\0\0\0\0\0\0\0\0x\0", 14);
    write_file(folder / "tokenizer.model", piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) +
                                               piece("<0x41>", 0, 6) + piece("\u2581", 64, 1) + piece("a", 70, 1) +
                                               piece("b", 80, 1) + piece("ab", 60, 1) +
                                               field(2, std::string("\x18") + model_type + "\xA8\x02\x01") +
                                               field(3, field(2, charsmap) + "\x20\x01"));
    damage("tokenizer.model", false);
  }
}

// What a file says is shown in messages, not obeyed: one line.
TEST_F(TokenizerDamage, MessagesAreOneLine) {
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& shown) {
    std::string changed = kSmall;
    ASSERT_NE(changed.find(from), std::string::npos);
    changed.replace(changed.find(from), from.size(), to);
    write_file(folder / "tokenizer.json", changed);
    const auto error = testing::error_of([&] { const Tokenizer tokenizer(tokenizer_from_folder(folder.path())); });
    ASSERT_TRUE(error);
    EXPECT_NE(error->message.find(shown), std::string::npos) << error->message;
    EXPECT_EQ(error->message.find('\n'), std::string::npos) << error->message;
  };
  refused(R"([^\\s]b|c)", R"(\n\\x{)", R"(\n\x{)");
  refused(R"(["_","ab"])", R"(["\n","ab"])", R"(\x0A)");
  refused(R"("type":"NFKC")", R"("type":"N\nC")", "N");
}

TEST_F(TokenizerDamage, WordList) {
  write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nab\n\u00E9\n##\n\n");
  damage("vocab.txt", false);
}

TEST_F(TokenizerDamage, Merges) {
  write_file(folder / "vocab.json", R"({"a":0,"b":1,"ab":2,"<|endoftext|>":3})");
  write_file(folder / "merges.txt", "#version: 0.2\na b\n");
  const auto names = [&](const std::string& merges, const std::vector<std::string>& words) {
    write_file(folder / "merges.txt", merges);
    expect_error(ErrorCode::bad_input, words, [&] { tokenizer_from_folder(folder.path()); });
  };
  names("#version: 0.2\na b\na c\n", {"merges.txt: line 3 'a c'", "'c' is not in vocab.json"});
  names("ab\n", {"line 1 'ab'", "two pieces"});
  names("a b c\n", {"line 1", "two pieces"});
  names(" b\n", {"line 1", "two pieces"});
  names("a \n", {"line 1", "two pieces"});
  write_file(folder / "merges.txt", "#version: 0.2\na b\n");
  write_file(folder / "vocab.json", R"({"a":0,"b":1,"ab":2,"zz":200000000})");
  expect_error(ErrorCode::bad_input, {"vocab.json", "'zz'", "200000000"},
               [&] { tokenizer_from_folder(folder.path()); });
  write_file(folder / "vocab.json", R"(["a"])");
  expect_error(ErrorCode::bad_input, {"vocab.json", "object"}, [&] { tokenizer_from_folder(folder.path()); });
}

// A megabyte without a space, for every kind of model: nothing takes the square of a text's length.
TEST_F(TokenizerDamage, AMegabyteIsNoTrap) {
  std::mt19937 rng(13);
  std::string mixed;
  while (mixed.size() < 1 << 20) mixed += "abcdefgh\u00E9"[rng() % 10];
  const auto start = std::chrono::steady_clock::now();
  for (const char* kind : {"gpt2", "gemma", "spm_bpe", "t5", "bert", "expression"}) {
    const Tokenizer tokenizer(tokenizer_from_folder(kTokenizers / kind));
    for (const std::string& text : {std::string(1 << 20, 'a'), mixed}) tokenizer.encode(text);
  }
  // Linear, they take seconds together; one square of a megabyte takes hours.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(5));
}

TEST_F(TokenizerDamage, AnExpressionThatNeverEnds) {
  std::string json = kSmall;
  const std::string expression = R"([^\\s]b|c)";
  json.replace(json.find(expression), expression.size(), R"((a+)+\\d)");
  write_file(folder / "tokenizer.json", json);
  const Tokenizer tokenizer(tokenizer_from_folder(folder.path()));
  expect_error(ErrorCode::unsupported, {"(a+)+", "too long"}, [&] { tokenizer.encode(std::string(5000, 'a')); });
}

}  // namespace
}  // namespace regard
