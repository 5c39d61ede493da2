#include "weights/folder_tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "tensor/error.h"
#include "weights/checked_json.h"
#include "weights/gguf.h"
#include "weights/sentencepiece_model.h"
#include "weights/tokenizer_json.h"
#include "weights/vocabulary_files.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestTemplate = std::uint64_t{16} << 20;
constexpr std::int64_t kMostUnused = 65536;

// The small files beside the vocabulary; those that are not there are empty.
struct Settings {
  fs::path folder;
  std::optional<JsonPlace> tokenizer, special, generation, model;

  explicit Settings(const fs::path& folder)
      : folder(folder),
        tokenizer(read("tokenizer_config.json")),
        special(read("special_tokens_map.json")),
        generation(read("generation_config.json")),
        model(read("config.json")) {}

  std::optional<JsonPlace> read(const char* name) const {
    if (!fs::exists(folder / name)) return std::nullopt;
    return read_json(folder / name);
  }

  // "<s>" or {"content": "<s>", ...}.
  std::optional<std::string> token(std::string_view member) const {
    for (const auto* file : {&tokenizer, &special}) {
      if (!*file) continue;
      const auto value = (*file)->find(member);
      if (!value) continue;
      return std::string((value->is_object() ? value->at("content") : *value).string());
    }
    return std::nullopt;
  }

  bool flag(std::string_view member, bool otherwise) const {
    return tokenizer ? tokenizer->boolean_or(member, otherwise) : otherwise;
  }

  // "T5Tokenizer" for T5TokenizerFast too; what the model is called where the tokenizer's class is not.
  std::string family() const {
    std::string name = tokenizer ? tokenizer->string_or("tokenizer_class", "") : "";
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    if (name.empty() && model) name = model->string_or("model_type", "");
    return name;
  }
};

// Ids by text, the later of equals.
using Ids = std::unordered_map<std::string, std::int32_t>;
Ids ids_of(const TokenizerSpec& spec) {
  Ids ids;
  for (std::size_t id = 0; id < spec.pieces.size(); ++id)
    if (!spec.pieces[id].empty()) ids[spec.pieces[id]] = static_cast<std::int32_t>(id);
  return ids;
}

void grow(TokenizerSpec& spec, std::size_t size) {
  if (size <= spec.pieces.size()) return;
  spec.pieces.resize(size);
  spec.types.resize(size, TokenType::unused);
  if (!spec.scores.empty()) spec.scores.resize(size);
  if (!spec.exact_scores.empty()) spec.exact_scores.resize(size);
}

// Adds a token that vocabularies without tokenizer.json do not list as added: by its own id if it has one.
void add_token(TokenizerSpec& spec, AddedToken token) {
  const auto at = static_cast<std::size_t>(token.id);
  grow(spec, at + 1);
  spec.pieces[at] = token.content;
  spec.types[at] = token.special ? TokenType::control : TokenType::user_defined;
  if (auto& added = spec.stages->added) added->push_back(std::move(token));
}

void name_tokens(const Settings& settings, TokenizerSpec& spec) {
  struct Name {
    std::string_view token, id;
    std::optional<std::int32_t> TokenizerSpec::*where;
  };
  static constexpr Name kNames[] = {{"bos_token", "bos_token_id", &TokenizerSpec::bos},
                                    {"eos_token", "eos_token_id", &TokenizerSpec::eos},
                                    {"pad_token", "pad_token_id", &TokenizerSpec::padding},
                                    {"unk_token", "", &TokenizerSpec::unknown},
                                    {"mask_token", "", &TokenizerSpec::mask},
                                    {"sep_token", "sep_token_id", &TokenizerSpec::separator},
                                    {"cls_token", "", &TokenizerSpec::classification}};
  const Ids ids = ids_of(spec);
  // A number, or a list of them; negative means none.
  const auto read_ids = [&](const JsonPlace& place) {
    std::vector<std::int32_t> read;
    for (const JsonPlace& one : place.is_array() ? place.elements() : std::vector{place}) {
      const std::int64_t id = one.integer();
      if (id < 0) continue;
      if (id >= static_cast<std::int64_t>(spec.pieces.size()))
        throw one.error(fmt::format("is {}, but the tokenizer has {} tokens", id, spec.pieces.size()));
      read.push_back(static_cast<std::int32_t>(id));
    }
    return read;
  };
  for (const Name& name : kNames) {
    if (const auto token = settings.token(name.token))
      if (const auto found = ids.find(*token); found != ids.end()) spec.*name.where = found->second;
    if (name.id.empty()) continue;
    for (const auto* file : {&settings.generation, &settings.model}) {
      const auto place = *file ? (*file)->find(name.id) : std::nullopt;
      if (!place) continue;
      const std::vector<std::int32_t> read = read_ids(*place);
      if (!(spec.*name.where) && !read.empty()) spec.*name.where = read.front();
      if (name.where == &TokenizerSpec::eos) spec.ends.insert(spec.ends.end(), read.begin(), read.end());
    }
  }
  std::sort(spec.ends.begin(), spec.ends.end());
  spec.ends.erase(std::unique(spec.ends.begin(), spec.ends.end()), spec.ends.end());
}

// Tokens that tokenizer_config.json and added_tokens.json put on top of a vocabulary without tokenizer.json.
void add_listed_tokens(const Settings& settings, TokenizerSpec& spec) {
  const auto most = static_cast<std::int64_t>(spec.pieces.size()) + kMostUnused;
  const auto check = [&](const JsonPlace& place, std::int64_t id) {
    if (id < 0 || id >= most) throw place.error(fmt::format("has the id {}, which is out of proportion", id));
  };
  const auto decoder = settings.tokenizer ? settings.tokenizer->find("added_tokens_decoder") : std::nullopt;
  if (decoder)
    for (const std::string& key : decoder->keys()) {
      const JsonPlace place = decoder->at(key);
      if (key.empty() || key.size() > 9 ||
          !std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; }))
        throw place.error("is not named by the id of a token");
      AddedToken token{.id = std::stoi(key), .content = std::string(place.at("content").string())};
      check(place, token.id);
      token.special = place.boolean_or("special", false);
      token.normalized = place.boolean_or("normalized", !token.special);
      token.single_word = place.boolean_or("single_word", false);
      token.strip_left = place.boolean_or("lstrip", false);
      token.strip_right = place.boolean_or("rstrip", false);
      add_token(spec, std::move(token));
    }
  if (decoder || !fs::exists(settings.folder / "added_tokens.json")) return;
  const JsonPlace added = read_json(settings.folder / "added_tokens.json");
  for (const std::string& content : added.keys()) {
    const std::int64_t id = added.at(content).integer();
    check(added.at(content), id);
    add_token(spec, {.id = static_cast<std::int32_t>(id), .content = content, .special = true});
  }
}

// The named tokens of a vocabulary that does not list what is special.
void add_named_tokens(const Settings& settings, const std::vector<std::pair<std::string_view, std::string_view>>& names,
                      TokenizerSpec& spec) {
  const Ids ids = ids_of(spec);
  for (const auto& [member, otherwise] : names) {
    const std::string content = settings.token(member).value_or(std::string(otherwise));
    const auto found = ids.find(content);
    if (found == ids.end()) continue;
    // As the classes for them make it: a mask takes the space before it along.
    const bool strips = member == "mask_token" && spec.kind == TokenizerSpec::Kind::byte_level_bpe;
    add_token(spec, {.id = found->second, .content = content, .special = true, .strip_left = strips});
    if (member == "unk_token") spec.stages->unknown = found->second;
  }
}

TokenizerSpec sentencepiece(const Settings& settings, const fs::path& path) {
  TokenizerSpec spec = tokenizer_from_sentencepiece(path);
  const std::string family = settings.family();
  if (family == "T5Tokenizer" || family == "t5") {
    const std::int64_t extra = settings.tokenizer ? settings.tokenizer->integer_or("extra_ids", 100) : 100;
    if (extra < 0 || extra > kMostUnused) throw settings.tokenizer->at("extra_ids").error("is out of range");
    // <extra_id_0> is the last one.
    const auto first = static_cast<std::int64_t>(spec.pieces.size());
    for (std::int64_t i = 0; i < extra; ++i)
      add_token(spec, {.id = static_cast<std::int32_t>(first + i),
                       .content = fmt::format("<extra_id_{}>", extra - 1 - i),
                       .special = true});
    spec.add_eos = true;
    return spec;
  }
  static constexpr std::string_view kKnown[] = {"LlamaTokenizer",   "llama",  "GemmaTokenizer", "gemma",
                                                "gemma2",           "gemma3", "gemma3_text",    "mistral",
                                                "MistralTokenizer", "phi3"};
  if (std::find(std::begin(kKnown), std::end(kKnown), family) == std::end(kKnown))
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: what puts tokens round a text for the tokenizer {} is not known", path.string(),
                            in_quotes(family)),
                "save the tokenizer as tokenizer.json, which says so itself");
  add_listed_tokens(settings, spec);
  spec.add_bos = settings.flag("add_bos_token", true);
  spec.add_eos = settings.flag("add_eos_token", false);
  return spec;
}

TokenizerSpec merges(const Settings& settings) {
  const std::string family = settings.family();
  const bool roberta = family == "RobertaTokenizer" || family == "roberta";
  const bool opt = settings.model && settings.model->string_or("model_type", "") == "opt";
  TokenizerSpec spec =
      tokenizer_from_merges(settings.folder / "vocab.json", settings.folder / "merges.txt",
                            {.add_prefix_space = settings.flag("add_prefix_space", false),
                             .qwen2 = family == "Qwen2Tokenizer" || family == "qwen2" || family == "qwen3"});
  if (roberta) {
    add_named_tokens(settings,
                     {{"bos_token", "<s>"},
                      {"eos_token", "</s>"},
                      {"unk_token", "<unk>"},
                      {"pad_token", "<pad>"},
                      {"mask_token", "<mask>"}},
                     spec);
    const Ids ids = ids_of(spec);
    const auto cls = ids.find(settings.token("cls_token").value_or("<s>"));
    const auto sep = ids.find(settings.token("sep_token").value_or("</s>"));
    if (cls == ids.end() || sep == ids.end())
      throw Error(ErrorCode::bad_input, fmt::format("{}: there is no '<s>' or no '</s>' in the vocabulary",
                                                    (settings.folder / "vocab.json").string()));
    spec.stages->prefix = {cls->second};
    spec.stages->suffix = {sep->second};
  } else {
    const std::string_view end = opt ? "</s>" : "<|endoftext|>";
    add_named_tokens(settings, {{"bos_token", end}, {"eos_token", end}, {"unk_token", end}, {"pad_token", ""}}, spec);
    spec.stages->unknown.reset();  // every byte has a piece
  }
  add_listed_tokens(settings, spec);
  spec.add_bos = settings.flag("add_bos_token", opt);
  return spec;
}

TokenizerSpec word_list(const Settings& settings) {
  WordPieceOptions options;
  options.lowercase = settings.flag("do_lower_case", true);
  options.space_ideographs = settings.flag("tokenize_chinese_chars", true);
  if (settings.tokenizer)
    if (const auto strip = settings.tokenizer->find("strip_accents")) options.strip_accents = strip->boolean();
  const fs::path path = settings.folder / "vocab.txt";
  TokenizerSpec spec = tokenizer_from_word_list(path, options);
  add_named_tokens(settings,
                   {{"unk_token", "[UNK]"},
                    {"sep_token", "[SEP]"},
                    {"pad_token", "[PAD]"},
                    {"cls_token", "[CLS]"},
                    {"mask_token", "[MASK]"}},
                   spec);
  const Ids ids = ids_of(spec);
  const auto cls = ids.find(settings.token("cls_token").value_or("[CLS]"));
  const auto sep = ids.find(settings.token("sep_token").value_or("[SEP]"));
  if (cls == ids.end() || sep == ids.end())
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: there is no '[CLS]' or no '[SEP]' in the vocabulary", path.string()));
  spec.classification = cls->second;
  spec.separator = sep->second;
  spec.stages->prefix = {cls->second};
  spec.stages->suffix = {sep->second};
  if (const auto mask = ids.find("[MASK]"); mask != ids.end()) spec.mask = mask->second;
  if (const auto pad = ids.find("[PAD]"); pad != ids.end()) spec.padding = pad->second;
  spec.unknown = spec.stages->unknown;
  return spec;
}

TokenizerSpec vocabulary(const Settings& settings) {
  const auto has = [&](const char* name) { return fs::exists(settings.folder / name); };
  if (has("tokenizer.json")) return tokenizer_from_json(settings.folder / "tokenizer.json");
  for (const char* name : {"tokenizer.model", "spiece.model"})
    if (has(name)) return sentencepiece(settings, settings.folder / name);
  if (has("source.spm") && has("vocab.json"))
    return tokenizer_from_marian(settings.folder / "source.spm", settings.folder / "vocab.json");
  if (has("vocab.json") && has("merges.txt")) return merges(settings);
  if (has("vocab.txt")) return word_list(settings);
  throw Error(ErrorCode::not_found, fmt::format("{}: there is no tokenizer", settings.folder.string()),
              "one of these is needed: tokenizer.json, tokenizer.model, spiece.model, source.spm with vocab.json, "
              "vocab.json with merges.txt, vocab.txt");
}

std::string chat_template(const Settings& settings) {
  const fs::path file = settings.folder / "chat_template.jinja";
  if (fs::exists(file)) return read_whole_file(file, kLargestTemplate);
  const auto place = settings.tokenizer ? settings.tokenizer->find("chat_template") : std::nullopt;
  if (!place) return {};
  if (!place->is_array()) return std::string(place->string());
  for (const JsonPlace& named : place->elements())
    if (named.at("name").string() == "default") return std::string(named.at("template").string());
  return {};
}

}  // namespace

TokenizerSpec tokenizer_from_folder(const fs::path& folder) {
  const Settings settings(folder);
  TokenizerSpec spec = vocabulary(settings);
  if (settings.model)
    if (const auto size = settings.model->find("vocab_size")) {
      const std::int64_t wanted = size->integer(), own = static_cast<std::int64_t>(spec.pieces.size());
      if (wanted > own + kMostUnused)
        throw size->error(fmt::format("is {}, but the tokenizer has {} tokens", wanted, own));
      if (wanted > own) grow(spec, static_cast<std::size_t>(wanted));
    }
  name_tokens(settings, spec);
  spec.chat_template = chat_template(settings);
  return spec;
}

}  // namespace regard
