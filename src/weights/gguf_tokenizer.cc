#include "weights/gguf_tokenizer.h"

#include <algorithm>
#include <limits>
#include <map>

#include "tensor/error.h"
#include "text/pretokenizer.h"
#include "weights/sentencepiece_model.h"

namespace regard {

namespace {

const GgufArray* list(const GgufFile& gguf, std::string_view key, std::size_t vocabulary) {
  const GgufArray* array = gguf.find_array(key);
  if (array != nullptr && static_cast<std::size_t>(array->count) != vocabulary)
    throw Error(ErrorCode::bad_input, fmt::format("{}: the metadata key {} has {} elements, but there are {} tokens",
                                                  gguf.file, in_quotes(key), array->count, vocabulary));
  return array;
}

std::vector<std::string> strings(const GgufFile& gguf, std::string_view key) {
  const GgufArray* array = gguf.find_array(key);
  if (array == nullptr || array->element != GgufType::string)
    throw Error(ErrorCode::bad_input, fmt::format("{}: the metadata key {} is {}", gguf.file, in_quotes(key),
                                                  array == nullptr ? "missing" : "not a list of strings"));
  return {array->strings.begin(), array->strings.end()};
}

// An id past the end, -1 as a number without a sign among them, is how files say that there is none.
std::optional<std::int32_t> token_id(const GgufFile& gguf, std::string_view key, std::size_t vocabulary) {
  const std::optional<std::int64_t> id = gguf.find_integer(key);
  if (!id || *id < 0 || *id >= static_cast<std::int64_t>(vocabulary)) return std::nullopt;
  return static_cast<std::int32_t>(*id);
}

// Keys that would change the ids of a SentencePiece BPE, if they were set to something.
void refuse_what_changes_ids(const GgufFile& gguf) {
  const GgufArray* charsmap = gguf.find_array("tokenizer.ggml.precompiled_charsmap");
  if (charsmap != nullptr && charsmap->count > 0)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: a tokenizer with a 'tokenizer.ggml.precompiled_charsmap' is not supported for this kind",
                    gguf.file));
  if (gguf.find_bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false))
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: 'tokenizer.ggml.remove_extra_whitespaces' is not supported for this kind", gguf.file));
}

TokenizerSpec::Kind kind_of(const GgufFile& gguf) {
  static constexpr std::pair<std::string_view, TokenizerSpec::Kind> kKinds[] = {
      {"gpt2", TokenizerSpec::Kind::byte_level_bpe},
      {"llama", TokenizerSpec::Kind::sentencepiece_bpe},
      {"t5", TokenizerSpec::Kind::unigram},
      {"bert", TokenizerSpec::Kind::wordpiece}};
  const std::string_view name = gguf.string("tokenizer.ggml.model");
  for (const auto& [known, kind] : kKinds)
    if (name == known) return kind;
  throw Error(
      ErrorCode::unsupported, fmt::format("{}: the tokenizer {} is not supported", gguf.file, in_quotes(name)),
      "supported are 'gpt2' (byte-level BPE), 'llama' (SentencePiece BPE), 't5' (Unigram) and 'bert' (WordPiece)");
}

// The bytes of a list of them.
std::string bytes_of(const GgufFile& gguf, std::string_view key) {
  std::string bytes;
  if (gguf.find_array(key) == nullptr) return bytes;
  const std::vector<std::int64_t> values = *gguf.find_integers(key);
  bytes.reserve(values.size());
  for (const std::int64_t value : values) {
    if (value < -128 || value > 255)
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: the metadata key {} holds {}, which is no byte", gguf.file, in_quotes(key), value));
    bytes.push_back(static_cast<char>(value));
  }
  return bytes;
}

// BERT's, which GGUF writes another way round: "\u2581the" begins a word and "ing" goes on, where the vocabulary has
// "the" and "##ing". The file does not say whether texts are lowered: they are where no piece has a capital letter.
void read_bert(TokenizerSpec& spec) {
  using Step = NormalizerStep::Kind;
  Stages& stages = spec.stages.emplace();
  bool capitals = false;
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
    std::string& piece = spec.pieces[id];
    const TokenType type = spec.types.empty() ? TokenType::normal : spec.types[id];
    if (type == TokenType::control || type == TokenType::unknown || type == TokenType::user_defined) continue;
    capitals |= std::any_of(piece.begin(), piece.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (piece.starts_with(kSpaceMark))
      piece.erase(0, kSpaceMark.size());
    else if (!piece.empty())
      piece.insert(0, "##");
  }
  stages.normalizers = {{.kind = Step::clean}, {.kind = Step::space_ideographs}};
  if (!capitals) {
    stages.normalizers.push_back({.kind = Step::strip_accents});
    stages.normalizers.push_back({.kind = Step::lowercase});
  }
  stages.cuts = {{.kind = CutStep::Kind::bert}};
  stages.continuing = "##";
  stages.spelling.word_marks = true;
}

// A file names one EOS, but a turn of a conversation often ends with another token: one that has a key, or that is
// written as llama.cpp knows them (llama-vocab.cpp, special_eog_ids). In gpt-oss <|end|> ends one message of several.
std::vector<std::int32_t> ends_of(const GgufFile& gguf, const TokenizerSpec& spec) {
  static constexpr std::string_view kEnds[] = {"<|eot_id|>", "<|im_end|>",      "<|end|>",       "<|return|>",
                                               "<|call|>",   "<end_of_turn>",   "<|endoftext|>", "<|eom_id|>",
                                               "<|flush|>",  "<|end_of_text|>", "<EOT>",         "_<EOT>",
                                               "[EOT]",      "[EOS]",           "<|calls|>",     "<end_of_utterance>"};
  std::vector<std::int32_t> ends;
  std::map<std::string_view, std::int32_t> found;
  for (std::size_t id = 0; id < spec.pieces.size(); ++id)
    if (std::find(std::begin(kEnds), std::end(kEnds), spec.pieces[id]) != std::end(kEnds))
      found[spec.pieces[id]] = static_cast<std::int32_t>(id);
  if (found.contains("<|return|>") && found.contains("<|call|>")) found.erase("<|end|>");
  for (const auto& [piece, id] : found) ends.push_back(id);
  for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const auto id = token_id(gguf, key, spec.pieces.size())) ends.push_back(*id);
  return ends;
}

// Phi 3's added tokens take white space behind them along. Files do not say so: it is known by their names, as
// llama.cpp does (llama-vocab.cpp, "phi-3").
std::vector<std::int32_t> strips_right(const GgufFile& gguf, const TokenizerSpec& spec) {
  std::string name(gguf.find_string("general.name").value_or(""));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  std::vector<std::int32_t> strips;
  if (name.find("phi-3") == std::string::npos && name.find("phi3") == std::string::npos) return strips;
  for (std::size_t id = 0; id < spec.types.size(); ++id) {
    const TokenType type = spec.types[id];
    const std::string& piece = spec.pieces[id];
    if (type != TokenType::control && type != TokenType::user_defined && piece != "</s>") continue;
    if (piece != "<unk>" && piece != "<s>" && piece != "<|endoftext|>") strips.push_back(static_cast<std::int32_t>(id));
  }
  return strips;
}

}  // namespace

TokenizerSpec tokenizer_from_gguf(const GgufFile& gguf) {
  TokenizerSpec spec;
  using Kind = TokenizerSpec::Kind;
  spec.kind = kind_of(gguf);
  const bool byte_level = spec.kind == Kind::byte_level_bpe, bert = spec.kind == Kind::wordpiece;
  const bool sentencepiece = spec.kind == Kind::sentencepiece_bpe, unigram = spec.kind == Kind::unigram;
  if (sentencepiece || byte_level) refuse_what_changes_ids(gguf);
  if (byte_level) spec.pre = gguf.find_string("tokenizer.ggml.pre").value_or("");

  spec.pieces = strings(gguf, "tokenizer.ggml.tokens");
  const std::size_t vocabulary = spec.pieces.size();
  if (vocabulary > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw Error(ErrorCode::bad_input, fmt::format("{}: {} tokens are more than ids can count", gguf.file, vocabulary));
  if (const GgufArray* scores = list(gguf, "tokenizer.ggml.scores", vocabulary)) {
    if (scores->element != GgufType::f32 && scores->element != GgufType::f64)
      throw Error(ErrorCode::bad_input, fmt::format("{}: 'tokenizer.ggml.scores' holds {}, not numbers", gguf.file,
                                                    name_of(scores->element)));
    for (std::int64_t i = 0; i < scores->count; ++i) spec.scores.push_back(static_cast<float>(scores->number(i)));
  } else if (sentencepiece || unigram) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the metadata key 'tokenizer.ggml.scores' is missing", gguf.file));
  }
  if (list(gguf, "tokenizer.ggml.token_type", vocabulary) != nullptr) {
    const std::vector<std::int64_t> numbers = *gguf.find_integers("tokenizer.ggml.token_type");
    for (const std::int64_t type : numbers) {
      if (type < 1 || type > 6)
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: 'tokenizer.ggml.token_type' gives token {} the unknown type {}", gguf.file,
                                spec.types.size(), type));
      spec.types.push_back(static_cast<TokenType>(type));
    }
  }
  if (byte_level) spec.merges = strings(gguf, "tokenizer.ggml.merges");

  // What a file that is silent means: as ggml reads it.
  const auto flag = [&](std::string_view key, bool otherwise) { return gguf.find_bool(key).value_or(otherwise); };
  const auto id = [&](std::string_view key) { return token_id(gguf, key, vocabulary); };
  spec.add_bos =
      flag("tokenizer.ggml.add_bos_token", sentencepiece || bert || (byte_level && begins_with_bos(spec.pre)));
  spec.add_eos = flag("tokenizer.ggml.add_eos_token", unigram);
  spec.add_space_prefix = flag("tokenizer.ggml.add_space_prefix", sentencepiece || unigram);
  spec.bos = id("tokenizer.ggml.bos_token_id");
  spec.eos = id("tokenizer.ggml.eos_token_id");
  spec.unknown = id("tokenizer.ggml.unknown_token_id");
  spec.padding = id("tokenizer.ggml.padding_token_id");
  spec.mask = id("tokenizer.ggml.mask_token_id");
  spec.classification = id("tokenizer.ggml.cls_token_id");
  spec.separator = id("tokenizer.ggml.seperator_token_id");  // the format's own spelling
  if (!spec.separator) spec.separator = id("tokenizer.ggml.separator_token_id");
  if (sentencepiece && vocabulary > 2) {
    if (!spec.bos) spec.bos = 1;
    if (!spec.eos) spec.eos = 2;
    if (!spec.unknown) spec.unknown = 0;
  }
  if (unigram) {
    if (!spec.eos && vocabulary > 1) spec.eos = 1;
    if (!spec.unknown && vocabulary > 2) spec.unknown = 2;
    spec.stages = sentencepiece_stages({.charsmap = bytes_of(gguf, "tokenizer.ggml.precompiled_charsmap"),
                                        .squeeze = flag("tokenizer.ggml.remove_extra_whitespaces", false),
                                        .dummy_prefix = spec.add_space_prefix,
                                        .byte_fallback = true});
  }
  if (bert) {
    const auto otherwise = [&](std::optional<std::int32_t>& token, std::int32_t usual) {
      if (!token && static_cast<std::size_t>(usual) < vocabulary) token = usual;
    };
    read_bert(spec);
    if (!spec.classification) spec.classification = spec.bos;
    otherwise(spec.classification, 101);
    otherwise(spec.separator, 102);
    otherwise(spec.unknown, 100);
    otherwise(spec.mask, 103);
    otherwise(spec.padding, 0);
    const bool wraps = spec.add_bos, ends = flag("tokenizer.ggml.add_sep_token", true);
    spec.add_bos = spec.add_eos = false;
    if ((wraps && !spec.classification) || (ends && !spec.separator))
      throw Error(ErrorCode::bad_input, fmt::format("{}: a text is to stand between [CLS] and [SEP], but "
                                                    "'tokenizer.ggml.cls_token_id' or the separator's is missing",
                                                    gguf.file));
    if (wraps) spec.stages->prefix = {*spec.classification};
    if (ends) spec.stages->suffix = {*spec.separator};
  }
  if (byte_level && !spec.bos && !gguf.find_bool("tokenizer.ggml.add_bos_token")) spec.add_bos = false;  // Falcon 3
  if (spec.stages) spec.stages->unknown = spec.unknown;
  if (spec.add_bos && !spec.bos)
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: a BOS is to be added to every text, but 'tokenizer.ggml.bos_token_id' is missing", gguf.file));
  if (spec.add_eos && !spec.eos)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: an EOS is to be added to every text, but 'tokenizer.ggml.eos_token_id' is missing",
                            gguf.file));
  if (spec.kind != Kind::wordpiece) spec.ends = ends_of(gguf, spec);
  spec.strip_right = strips_right(gguf, spec);
  for (const auto& [name, token] : {std::pair("bos_token", spec.bos),
                                    {"eos_token", spec.eos},
                                    {"unk_token", spec.unknown},
                                    {"pad_token", spec.padding},
                                    {"mask_token", spec.mask},
                                    {"sep_token", spec.separator},
                                    {"cls_token", spec.classification}})
    if (token) spec.template_tokens.emplace_back(name, spec.pieces[static_cast<std::size_t>(*token)]);
  spec.chat_template = gguf.find_string("tokenizer.chat_template").value_or("");
  return spec;
}

}  // namespace regard
