#include "weights/folder_tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "text/tokenizer.h"
#include "weights/checked_json.h"

namespace regard {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::TempFolder;
using testing::write_file;
using Ids = std::vector<std::int32_t>;

const fs::path kFolder = REGARD_TEST_DATA "/tokenizers";

struct Expected {
  std::vector<std::string> texts;
  std::map<std::string, std::vector<std::optional<Ids>>> ids;  // by folder; nothing where the peer cannot be asked
};

const Expected& expected() {
  static const Expected read = [] {
    Expected made;
    const JsonPlace root = read_json(kFolder / "expected.json");
    for (const JsonPlace& text : root.at("texts").elements()) made.texts.emplace_back(text.string());
    const JsonPlace ids = root.at("ids");
    for (const std::string& name : ids.keys())
      for (const JsonPlace& one : ids.at(name).elements()) {
        auto& into = made.ids[name].emplace_back();
        if (one.is_null()) continue;
        into.emplace();
        for (const JsonPlace& id : one.elements()) into->push_back(static_cast<std::int32_t>(id.integer()));
      }
    return made;
  }();
  return read;
}

TEST(FolderTokenizer, GivesThePublicImplementationsIds) {
  int compared = 0;
  for (const auto& [name, lists] : expected().ids) {
    const Tokenizer tokenizer(tokenizer_from_folder(kFolder / name));
    ASSERT_EQ(lists.size(), expected().texts.size());
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (!lists[i]) continue;
      EXPECT_EQ(tokenizer.encode_ids(expected().texts[i]), *lists[i]) << name << ": " << expected().texts[i];
      ++compared;
    }
  }
  EXPECT_EQ(expected().ids.size(), 24u);
  EXPECT_GT(compared, 2800);
}

TEST(FolderTokenizer, RangesAreThoseOfTheOriginalText) {
  for (const auto& [name, lists] : expected().ids) {
    const Tokenizer tokenizer(tokenizer_from_folder(kFolder / name));
    for (const std::string& text : expected().texts) {
      std::int64_t before = 0;
      for (const Token& token : tokenizer.encode(text)) {
        ASSERT_LE(before, token.begin) << name << ": " << text;
        ASSERT_LE(token.begin, token.end);
        ASSERT_LE(token.end, static_cast<std::int64_t>(text.size()));
        before = token.begin;
      }
    }
  }
}

// Where nothing is rewritten, a token's bytes are those of its range, and ids give the text back.
TEST(FolderTokenizer, IdsGiveTheTextBack) {
  for (const char* name : {"gpt2", "smollm", "o200k", "expression", "llama3", "merges"}) {
    const Tokenizer tokenizer(tokenizer_from_folder(kFolder / name));
    for (const std::string& text : expected().texts) {
      const std::vector<Token> tokens = tokenizer.encode(text, {.parse_special = true, .add_special = false});
      std::int64_t at = 0;
      for (const Token& token : tokens) {
        ASSERT_EQ(token.begin, at) << name << ": " << text;
        at = token.end;
        ASSERT_EQ(tokenizer.bytes(token.id), text.substr(static_cast<std::size_t>(token.begin),
                                                         static_cast<std::size_t>(token.end - token.begin)));
      }
      ASSERT_EQ(at, static_cast<std::int64_t>(text.size()));
    }
  }
  const Tokenizer gemma(tokenizer_from_folder(kFolder / "gemma"));
  const std::string text = "Hello  world\n\n\xE6\x88\x91 \xF0\x9F\x98\x80 \xFF!";  // the last sign but one is no UTF-8
  EXPECT_EQ(gemma.decode(gemma.encode_ids(text, {.parse_special = true, .add_special = false})), text);
  const Tokenizer bert(tokenizer_from_folder(kFolder / "bert"));
  EXPECT_EQ(bert.decode(bert.encode_ids("The FOX  there", {.parse_special = true, .add_special = false})),
            "the fox there");
}

TEST(FolderTokenizer, RangesThroughRewriting) {
  const Tokenizer bert(tokenizer_from_folder(kFolder / "bert"));
  const auto words = [&](const std::string& text) {
    std::vector<std::string> parts;
    for (const Token& token : bert.encode(text, {.parse_special = true, .add_special = false}))
      parts.push_back(
          text.substr(static_cast<std::size_t>(token.begin), static_cast<std::size_t>(token.end - token.begin)));
    return parts;
  };
  EXPECT_EQ(words("The\u00A0FOX,\x01 lazy"), (std::vector<std::string>{"The", "FOX", ",", "lazy"}));
  EXPECT_EQ(words("TH\u00C9 fox"), (std::vector<std::string>{"TH\u00C9", "fox"}));
  EXPECT_EQ(words("THE\u0301 fox"), (std::vector<std::string>{"THE", "fox"}));  // the mark is taken away
}

TEST(FolderTokenizer, SpecialTokensOnRequest) {
  const Tokenizer tokenizer(tokenizer_from_folder(kFolder / "llama3"));
  const Ids parsed = tokenizer.encode_ids("a<|end|>", {.parse_special = true, .add_special = false});
  ASSERT_EQ(parsed.size(), 2u);
  EXPECT_TRUE(tokenizer.is_special(parsed[1]));
  EXPECT_EQ(tokenizer.bytes(parsed[1]), "<|end|>");
  for (const std::int32_t id : tokenizer.encode_ids("a<|end|>", {.parse_special = false, .add_special = false}))
    EXPECT_FALSE(tokenizer.is_special(id));
}

// A folder of its own whose files can be spoiled.
class FolderTokenizerFiles : public ::testing::Test {
 protected:
  void copy(const std::string& name) {
    fs::copy(kFolder / name, folder.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  TokenizerSpec load() const { return tokenizer_from_folder(folder.path()); }
  const TempFolder folder;
};

// Tokens that tokenizer.json does not list, and what is said of those that it does (transformers,
// tokenization_utils_tokenizers.py).
TEST_F(FolderTokenizerFiles, TokensBesideTokenizerJson) {
  copy("bert");
  using Ids = std::vector<std::int32_t>;
  const auto ids = [&](const char* text) { return Tokenizer(load()).encode_ids(text, {.add_special = false}); };
  const std::int32_t end = Tokenizer(load()).vocabulary();
  const Ids plain = ids("[NEW]");
  ASSERT_GT(plain.size(), 1u);
  write_file(folder / "config.json", fmt::format(R"({{"vocab_size": {}}})", end + 2));
  const auto added = [&](const std::string& json) {
    write_file(folder / "tokenizer_config.json", json);
    return ids("[NEW]");
  };
  const std::string by_id = fmt::format(
      R"({{"added_tokens_decoder": {{"{}": {{"content": "[NEW]", "special": true, "rstrip": true}}}}}})", end);
  EXPECT_EQ(added(by_id), Ids{end});
  EXPECT_EQ(ids("[NEW]  "), Ids{end});
  EXPECT_EQ(added(R"({"additional_special_tokens": ["[SEP]", {"content": "[NEW]"}]})"), Ids{end});
  EXPECT_EQ(added(R"({"additional_special_tokens": ["[A]", "[B]", "[NEW]"]})"), plain);  // no row of the model left
  // An id that is another's is not taken from it.
  EXPECT_EQ(added(R"({"added_tokens_decoder": {"3": {"content": "[NEW]"}}})"), Ids{end});
  EXPECT_EQ(ids("[SEP]"), Ids{3});
  fs::remove(folder / "tokenizer_config.json");
  write_file(folder / "added_tokens.json", fmt::format(R"({{"[NEW]": {}}})", end));
  EXPECT_EQ(ids("[NEW]"), Ids{end});
  // Of a token that is listed, the settings' flags count.
  const Ids two = ids("[MASK] .");
  write_file(folder / "tokenizer_config.json",
             R"({"added_tokens_decoder": {"4": {"content": "[MASK]", "special": true, "single_word": true}}})");
  EXPECT_EQ(ids("[MASK] ."), two);
  EXPECT_NE(ids("x[MASK]").back(), 4);
}

// do_lower_case of tokenizer_config.json counts, whatever tokenizer.json says.
TEST_F(FolderTokenizerFiles, BertIsLoweredAsItsSettingsSay) {
  copy("bert");
  const auto ids = [&](const char* text) { return Tokenizer(load()).encode_ids(text); };
  const auto lower = ids("\u00C4bc"), upper = [&] {
    write_file(folder / "tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false})");
    return ids("\u00C4bc");
  }();
  EXPECT_NE(lower, upper);
  write_file(folder / "tokenizer_config.json", R"({"tokenizer_class": "BertTokenizerFast", "do_lower_case": true})");
  EXPECT_EQ(ids("\u00C4bc"), lower);
  write_file(folder / "tokenizer_config.json", R"({"tokenizer_class": "OtherTokenizer", "do_lower_case": false})");
  EXPECT_EQ(ids("\u00C4bc"), lower);
}

// A language that a text of Marian's is to be put into: one token where the text begins, and nowhere else.
TEST_F(FolderTokenizerFiles, MarianTakesALanguageWhereTheTextBegins) {
  copy("marian");
  nlohmann::json vocabulary = nlohmann::json::parse(testing::read_file(folder / "vocab.json"));
  const auto code = static_cast<std::int32_t>(vocabulary.size());
  vocabulary[">>deu<<"] = code;
  write_file(folder / "vocab.json", vocabulary.dump());
  const Tokenizer tokenizer(load());
  std::vector<std::int32_t> expected = tokenizer.encode_ids("a word");
  expected.insert(expected.begin(), code);
  EXPECT_EQ(tokenizer.encode_ids(">>deu<< a word"), expected);
  for (const char* text : {" >>deu<< a word", "a >>deu<<"}) {
    const std::vector<std::int32_t> ids = tokenizer.encode_ids(text);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), code), 0) << text;
  }
}

TEST_F(FolderTokenizerFiles, TokensThatATemplateMayWrite) {
  copy("bert");
  write_file(folder / "config.json", R"({"bos_token_id": 2, "vocab_size": 510})");
  write_file(folder / "tokenizer_config.json",
             R"({"bos_token": null, "eos_token": {"content": "[SEP]"}, "pad_token": "[PAD]",
                 "extra_special_tokens": {"image_token": "[I]"}, "chat_template": {"default": "{{ z }}"}})");
  const TokenizerSpec spec = load();
  EXPECT_EQ(spec.bos, 2);  // named by its id alone: a template has no name for it
  EXPECT_EQ(spec.template_tokens, (std::vector<std::pair<std::string, std::string>>{
                                      {"eos_token", "[SEP]"}, {"pad_token", "[PAD]"}, {"image_token", "[I]"}}));
  EXPECT_EQ(spec.chat_template, "{{ z }}");
}

TEST_F(FolderTokenizerFiles, NamedTokens) {
  copy("bert");
  write_file(folder / "tokenizer_config.json",
             R"({"cls_token": "[CLS]", "mask_token": {"content": "[MASK]", "lstrip": false}, "bos_token": null,
                 "chat_template": [{"name": "tool", "template": "no"}, {"name": "default", "template": "{{ x }}"}]})");
  write_file(folder / "special_tokens_map.json", R"({"sep_token": "[SEP]", "pad_token": "[PAD]"})");
  write_file(folder / "config.json",
             R"({"eos_token_id": [3, 2], "bos_token_id": 2, "vocab_size": 510, "pad_token_id": -1})");
  write_file(folder / "generation_config.json", R"({"eos_token_id": 4})");
  const Tokenizer tokenizer(load());
  EXPECT_EQ(tokenizer.classification(), 2);
  EXPECT_EQ(tokenizer.separator(), 3);
  EXPECT_EQ(tokenizer.mask(), 4);
  EXPECT_EQ(tokenizer.padding(), 0);
  EXPECT_EQ(tokenizer.unknown(), 1);
  EXPECT_EQ(tokenizer.bos(), 2);
  EXPECT_EQ(tokenizer.eos(), 4);
  EXPECT_EQ(tokenizer.vocabulary(), 510);
  EXPECT_EQ(tokenizer.bytes(509), "");
  EXPECT_EQ(tokenizer.spec().chat_template, "{{ x }}");
  EXPECT_TRUE(tokenizer.ends_text(4));  // generation_config.json speaks instead of config.json
  for (const std::int32_t id : {2, 3, 5}) EXPECT_FALSE(tokenizer.ends_text(id));
  write_file(folder / "chat_template.jinja", "{{ y }}");
  EXPECT_EQ(load().chat_template, "{{ y }}");
  // The defaults of a family beside a small vocabulary of one's own, as transformers writes them.
  fs::remove(folder / "generation_config.json");
  write_file(folder / "config.json", R"({"eos_token_id": 50256, "bos_token_id": [510, 7], "vocab_size": 510})");
  EXPECT_EQ(load().eos, std::nullopt);
  EXPECT_EQ(load().bos, 7);
  write_file(folder / "config.json", R"({"vocab_size": 2147483647})");
  expect_error(ErrorCode::bad_input, {"config.json: vocab_size is 2147483647"}, [&] { load(); });
}

TEST_F(FolderTokenizerFiles, WhatIsNotThere) {
  expect_error(ErrorCode::not_found, {folder.path().string(), "no tokenizer"}, [&] { load(); });
  fs::copy(kFolder / "spm_bpe" / "tokenizer.model", folder / "tokenizer.model");
  expect_error(ErrorCode::unsupported, {"tokenizer.model", "''"}, [&] { load(); });
  write_file(folder / "config.json", R"({"model_type": "t5"})");
  const Tokenizer t5(load());
  EXPECT_EQ(t5.bytes(static_cast<std::int32_t>(t5.vocabulary()) - 1), "<extra_id_0>");
  EXPECT_EQ(t5.encode_ids("").back(), t5.eos());
}

TEST_F(FolderTokenizerFiles, WhatIsNotUnderstoodIsNamedWithItsPlace) {
  copy("gemma");
  const std::string whole = testing::read_file(folder / "tokenizer.json");
  const auto refuses = [&](const std::string& from, const std::string& to, const std::vector<std::string>& words,
                           ErrorCode code = ErrorCode::unsupported) {
    SCOPED_TRACE(to);
    std::string spoiled = whole;
    const std::size_t at = spoiled.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file(folder / "tokenizer.json", spoiled.replace(at, from.size(), to));
    expect_error(code, words, [&] { Tokenizer{load()}; });
  };
  const std::string file = "tokenizer.json: ";
  refuses(R"("type":"BPE")", R"("type":"WordLevel")", {file + "model is", "'WordLevel'"});
  refuses(R"("dropout":null)", R"("dropout":0.1)", {file + "model.dropout"});
  refuses(R"("type":"Replace")", R"("type":"Magic")", {file + "normalizer is", "'Magic'"});
  refuses(R"("type":"Split")", R"("type":"UnicodeScripts")", {file + "pre_tokenizer is", "'UnicodeScripts'"});
  refuses(R"("behavior":"MergedWithPrevious")", R"("behavior":"Eaten")", {file + "pre_tokenizer.behavior", "'Eaten'"});
  refuses(R"("type":"TemplateProcessing")", R"("type":"Other")", {file + "post_processor is", "'Other'"});
  refuses(R"("type":"ByteFallback")", R"("type":"CTC")", {file + "decoder.decoders[1] is", "'CTC'"});
  refuses(R"("Sequence":{"id":"A")", R"("Sequence":{"id":"B")", {file + "post_processor.single[1].Sequence"});
  refuses(R"("ids":[2])", R"("ids":[99999])", {"prefix", "99999"}, ErrorCode::bad_input);
  refuses(R"("ids":[2])", R"("ids":[-1])", {"is no id"}, ErrorCode::bad_input);
  refuses(R"("<bos>":2)", R"("<bos>":2147483648)", {"'<bos>'", "2147483648"}, ErrorCode::bad_input);
  refuses(R"("<bos>":2)", R"("<bos>":-2)", {"'<bos>'", "-2"}, ErrorCode::bad_input);
  refuses(R"("<bos>":2)", R"("<bos>":3)", {"both have the id 3"}, ErrorCode::bad_input);
  refuses(R"("<bos>":2)", R"("<bos>":2.5)", {"no number"}, ErrorCode::bad_input);
  refuses(R"("<bos>":2)", R"("<eos>":2)", {"twice"}, ErrorCode::bad_input);
  refuses(R"("merges":[["x")", R"("merges":[["nothing")", {file + "model.merges[0]", "'nothing'"},
          ErrorCode::bad_input);
  refuses(R"("merges":[[)", R"("merges":["a  b",[)", {file + "model.merges[0]", "two pieces"}, ErrorCode::bad_input);
  refuses(R"("String":" ")", R"("Regex":"(")", {"regular expression"});
  refuses(R"("String":" ")", R"("Regex":"[a&&b]")", {"intersection"});
}

}  // namespace
}  // namespace regard
