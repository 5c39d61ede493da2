#include "weights/folder_tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "tensor/error.h"
#include "text/piece_index.h"
#include "weights/checked_json.h"
#include "weights/folder_settings.h"
#include "weights/gguf.h"
#include "weights/sentencepiece_model.h"
#include "weights/tokenizer_json.h"
#include "weights/vocabulary_files.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostUnused = 65536;

void grow(TokenizerSpec& spec, std::size_t size) {
  if (size <= spec.pieces.size()) return;
  spec.pieces.resize(size);
  spec.types.resize(size, TokenType::unused);
  if (!spec.scores.empty()) spec.scores.resize(size);
  if (!spec.exact_scores.empty()) spec.exact_scores.resize(size);
}

// Puts added tokens on top of a vocabulary.
class TokenAdder {
 public:
  explicit TokenAdder(TokenizerSpec& spec) : spec_(spec), ids_(ids_of(spec)) {
    if (const auto& added = spec.stages->added)
      for (std::size_t i = 0; i < added->size(); ++i) places_.emplace((*added)[i].content, i);
  }

  std::optional<std::int32_t> find(std::string_view content) const { return ids_.find(spec_.pieces, content); }
  bool has(const std::string& content) const { return places_.contains(content); }  // among the added
  std::int32_t end() const { return static_cast<std::int32_t>(spec_.pieces.size()); }

  // Adds a token, or says how one that is added already is looked for. What the vocabulary has keeps its id; what it
  // does not have takes nobody else's.
  void add(AddedToken token) {
    auto& added = spec_.stages->added;
    const auto place = places_.find(token.content);
    if (place != places_.end()) {
      token.id = (*added)[place->second].id;
      spec_.types[static_cast<std::size_t>(token.id)] = type_of_added(token);
      (*added)[place->second] = std::move(token);
      return;
    }
    if (const auto found = token.content.empty() ? std::nullopt : find(token.content))
      token.id = *found;
    else if (token.id < end() && !spec_.pieces[static_cast<std::size_t>(token.id)].empty())
      token.id = end();
    const auto at = static_cast<std::size_t>(token.id);
    grow(spec_, at + 1);
    spec_.pieces[at] = token.content;
    spec_.types[at] = type_of_added(token);
    if (!token.content.empty()) ids_.set(spec_.pieces, token.id);
    if (!added) return;
    places_.emplace(token.content, added->size());
    added->push_back(std::move(token));
  }

 private:
  static TokenType type_of_added(const AddedToken& token) {
    return token.special ? TokenType::control : TokenType::user_defined;
  }

  TokenizerSpec& spec_;
  PieceIndex ids_;
  std::unordered_map<std::string, std::size_t> places_;  // in stages->added, by content
};

// Numbers in their order: "9" before "10".
std::vector<std::string> in_order(std::vector<std::string> numbers) {
  std::stable_sort(numbers.begin(), numbers.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return numbers;
}

// Tokens that tokenizer_config.json and added_tokens.json put on top of a vocabulary. What they say of a token that
// tokenizer.json lists too counts, as in transformers.
void add_listed_tokens(const FolderSettings& settings, TokenizerSpec& spec) {
  const auto most = static_cast<std::int64_t>(spec.pieces.size()) + kMostUnused;
  const auto check = [&](const JsonPlace& place, std::int64_t id) {
    if (id < 0 || id >= most) throw place.error(fmt::format("has the id {}, which is out of proportion", id));
  };
  TokenAdder adder(spec);
  const auto decoder = settings.tokenizer ? settings.tokenizer->find("added_tokens_decoder") : std::nullopt;
  if (decoder)
    for (const std::string& key : in_order(decoder->keys())) {
      const JsonPlace place = decoder->at(key);
      if (key.empty() || key.size() > 9 ||
          !std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; }))
        throw place.error("is not named by the id of a token");
      AddedToken token{.id = std::stoi(key), .content = std::string(place.at("content").string())};
      check(place, token.id);
      read_flags(place, token);
      adder.add(std::move(token));
    }
  if (decoder || !fs::exists(settings.folder / "added_tokens.json")) return;
  const JsonPlace added = read_json(settings.folder / "added_tokens.json");
  for (const std::string& content : added.keys()) {
    const std::int64_t id = added.at(content).integer();
    check(added.at(content), id);
    adder.add({.id = static_cast<std::int32_t>(id), .content = content, .special = true});
  }
}

// "additional_special_tokens" that the vocabulary does not have come behind it, if the model has rows for them.
void add_additional_tokens(const FolderSettings& settings, TokenizerSpec& spec) {
  const auto list = settings.tokenizer ? settings.tokenizer->find("additional_special_tokens") : std::nullopt;
  const std::int64_t rows = settings.model ? settings.model->integer_or("vocab_size", 0) : 0;
  if (!list || !list->is_array()) return;
  TokenAdder adder(spec);
  for (const JsonPlace& place : list->elements()) {
    const std::string content(place.is_object() ? place.at("content").string() : place.string());
    const auto found = content.empty() ? std::nullopt : adder.find(content);
    if (content.empty() || adder.has(content) || (!found && adder.end() >= rows)) continue;
    adder.add({.id = found.value_or(adder.end()), .content = content, .special = true});
  }
}

// The named tokens of a vocabulary that does not list what is special.
void add_named_tokens(const FolderSettings& settings,
                      const std::vector<std::pair<std::string_view, std::string_view>>& names, TokenizerSpec& spec) {
  TokenAdder adder(spec);
  for (const auto& [member, otherwise] : names) {
    const std::string content = settings.token(member).value_or(std::string(otherwise));
    const auto found = content.empty() ? std::nullopt : adder.find(content);
    if (!found) continue;
    AddedToken token{.id = *found, .content = content, .special = true};
    if (const auto place = settings.token_place(member); place && place->is_object()) read_flags(*place, token);
    token.special = true;
    adder.add(std::move(token));
    if (member == "unk_token") spec.stages->unknown = *found;
  }
}

TokenizerSpec sentencepiece(const FolderSettings& settings, const fs::path& path) {
  TokenizerSpec spec = tokenizer_from_sentencepiece(path);
  const std::string family = settings.family();
  if (family == "T5Tokenizer" || family == "t5") {
    const std::int64_t extra = settings.tokenizer ? settings.tokenizer->integer_or("extra_ids", 100) : 100;
    if (extra < 0 || extra > kMostUnused) throw settings.tokenizer->at("extra_ids").error("is out of range");
    // <extra_id_0> is the last one.
    const auto first = static_cast<std::int64_t>(spec.pieces.size());
    TokenAdder adder(spec);
    for (std::int64_t i = 0; i < extra; ++i)
      adder.add({.id = static_cast<std::int32_t>(first + i),
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

TokenizerSpec merges(const FolderSettings& settings) {
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
    const PieceIndex ids = ids_of(spec);
    const auto cls = ids.find(spec.pieces, settings.token("cls_token").value_or("<s>"));
    const auto sep = ids.find(spec.pieces, settings.token("sep_token").value_or("</s>"));
    if (!cls || !sep)
      throw Error(ErrorCode::bad_input, fmt::format("{}: there is no '<s>' or no '</s>' in the vocabulary",
                                                    (settings.folder / "vocab.json").string()));
    spec.stages->prefix = {*cls};
    spec.stages->suffix = {*sep};
  } else {
    const std::string_view end = opt ? "</s>" : "<|endoftext|>";
    add_named_tokens(settings, {{"bos_token", end}, {"eos_token", end}, {"unk_token", end}, {"pad_token", ""}}, spec);
    spec.stages->unknown.reset();  // every byte has a piece
  }
  add_listed_tokens(settings, spec);
  spec.add_bos = settings.flag("add_bos_token", opt);
  return spec;
}

TokenizerSpec word_list(const FolderSettings& settings) {
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
  const PieceIndex ids = ids_of(spec);
  const auto cls = ids.find(spec.pieces, settings.token("cls_token").value_or("[CLS]"));
  const auto sep = ids.find(spec.pieces, settings.token("sep_token").value_or("[SEP]"));
  if (!cls || !sep)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: there is no '[CLS]' or no '[SEP]' in the vocabulary", path.string()));
  spec.classification = *cls;
  spec.separator = *sep;
  spec.stages->prefix = {*cls};
  spec.stages->suffix = {*sep};
  spec.mask = ids.find(spec.pieces, "[MASK]");
  spec.padding = ids.find(spec.pieces, "[PAD]");
  spec.unknown = spec.stages->unknown;
  return spec;
}

// What tokenizer_config.json says of BERT's normalisation counts, whatever tokenizer.json says (BertTokenizer).
void follow_bert_settings(const FolderSettings& settings, TokenizerSpec& spec) {
  using Kind = NormalizerStep::Kind;
  std::vector<NormalizerStep>& steps = spec.stages->normalizers;
  const bool bert = std::all_of(steps.begin(), steps.end(), [](const NormalizerStep& step) {
    return step.kind == Kind::clean || step.kind == Kind::space_ideographs || step.kind == Kind::strip_accents ||
           step.kind == Kind::lowercase;
  });
  if (spec.kind != TokenizerSpec::Kind::wordpiece || !bert || !settings.family().ends_with("BertTokenizer")) return;
  const bool lowercase = settings.flag("do_lower_case", true);
  const bool cleans =
      std::any_of(steps.begin(), steps.end(), [](const auto& step) { return step.kind == Kind::clean; });
  steps.clear();
  if (cleans) steps.push_back({.kind = Kind::clean});
  if (settings.flag("tokenize_chinese_chars", true)) steps.push_back({.kind = Kind::space_ideographs});
  if (settings.flag("strip_accents", lowercase)) steps.push_back({.kind = Kind::strip_accents});
  if (lowercase) steps.push_back({.kind = Kind::lowercase});
}

TokenizerSpec vocabulary(const FolderSettings& settings) {
  const auto has = [&](const char* name) { return fs::exists(settings.folder / name); };
  if (has("tokenizer.json")) {
    TokenizerSpec spec = tokenizer_from_json(settings.folder / "tokenizer.json");
    follow_bert_settings(settings, spec);
    add_listed_tokens(settings, spec);
    add_additional_tokens(settings, spec);
    return spec;
  }
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

}  // namespace

TokenizerSpec tokenizer_from_folder(const fs::path& folder) {
  const FolderSettings settings(folder);
  TokenizerSpec spec = vocabulary(settings);
  if (settings.model)
    if (const auto size = settings.model->find("vocab_size")) {
      const std::int64_t wanted = size->integer(), own = static_cast<std::int64_t>(spec.pieces.size());
      if (wanted > own + kMostUnused)
        throw size->error(fmt::format("is {}, but the tokenizer has {} tokens", wanted, own));
      if (wanted > own) grow(spec, static_cast<std::size_t>(wanted));
    }
  name_tokens(settings, spec);
  spec.chat_template = settings.chat_template();
  return spec;
}

}  // namespace regard
