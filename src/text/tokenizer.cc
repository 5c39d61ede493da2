#include "text/tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tensor/error.h"
#include "text/added_tokens.h"
#include "text/byte_pieces.h"
#include "text/cutter.h"
#include "text/display.h"
#include "text/encoder.h"
#include "text/nearest_word.h"
#include "text/normalizer.h"
#include "text/piece_texts.h"
#include "text/stages.h"

namespace regard {
namespace {

constexpr auto kLongestText = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());

[[noreturn]] void fail(std::string message) {
  throw Error(ErrorCode::bad_input, std::move(message), "the file is damaged or was written by a faulty converter");
}

// Everything that does not depend on the kind.
void check(const TokenizerSpec& spec) {
  const std::size_t n = spec.pieces.size();
  if (n == 0) fail("the tokenizer's vocabulary is empty");
  if (n > kLongestText) fail(fmt::format("the tokenizer's vocabulary has {} pieces, more than an id can count", n));
  if (!spec.scores.empty() && spec.scores.size() != n)
    fail(fmt::format("the tokenizer has {} scores for {} pieces", spec.scores.size(), n));
  if (!spec.types.empty() && spec.types.size() != n)
    fail(fmt::format("the tokenizer has {} token types for {} pieces", spec.types.size(), n));
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < n; ++id) {
    const auto type = static_cast<std::int32_t>(type_of(spec, id));
    if (type < 1 || type > 6) fail(fmt::format("the type of token {} is {}, which is none of 1 to 6", id, type));
    if (type_of(spec, id) == TokenType::byte && spec.kind != TokenizerSpec::Kind::byte_level_bpe &&
        named_byte(spec.pieces[id]) < 0)
      fail(fmt::format("token {} '{}' is said to be a byte, but is not written like <0x0A>", id,
                       display(spec.pieces[id])));
    bytes += spec.pieces[id].size();
  }
  if (bytes > kLongestText)
    fail(fmt::format("the tokenizer's pieces have {} bytes together, too many to index", bytes));
  const auto check_id = [&](std::string_view name, std::int32_t id) {
    if (id < 0 || static_cast<std::size_t>(id) >= n)
      fail(fmt::format("the {} token's id {} is outside the vocabulary of {} pieces", name, id, n));
  };
  const std::pair<std::string_view, std::optional<std::int32_t>> named[] = {{"BOS", spec.bos},
                                                                            {"EOS", spec.eos},
                                                                            {"unknown", spec.unknown},
                                                                            {"padding", spec.padding},
                                                                            {"mask", spec.mask},
                                                                            {"separator", spec.separator},
                                                                            {"classification", spec.classification}};
  for (const auto& [name, id] : named)
    if (id) check_id(name, *id);
  for (const std::int32_t id : spec.ends) check_id("ending", id);
  if (spec.stages) {
    if (spec.stages->unknown) check_id("unknown", *spec.stages->unknown);
    for (const std::int32_t id : spec.stages->prefix) check_id("prefix", id);
    for (const std::int32_t id : spec.stages->suffix) check_id("suffix", id);
    if (spec.stages->added)
      for (const AddedToken& token : *spec.stages->added) check_id("added", token.id);
  }
  if (spec.add_bos && !spec.bos) fail("the tokenizer puts a BOS token before every text but does not name one");
  if (spec.add_eos && !spec.eos) fail("the tokenizer puts an EOS token behind every text but does not name one");
}

}  // namespace

struct Tokenizer::Model {
  TokenizerSpec spec;
  Stages stages;
  PieceTexts texts;
  Normalizer normalizer;
  AddedTokens added;
  Cutter cutter;
  std::unique_ptr<Encoder> encoder;
  std::vector<std::int32_t> prefix, suffix;
  std::string kind_name;

  explicit Model(TokenizerSpec given)
      : spec(std::move(given)),
        stages(spec.stages ? *spec.stages : stages_of(spec)),
        texts(spec, stages),
        normalizer(stages.normalizers),
        added(stages.added ? *stages.added : added_by_type(), normalizer),
        cutter(stages.cuts) {
    switch (spec.kind) {
      case TokenizerSpec::Kind::byte_level_bpe:
        encoder = make_byte_level_encoder(spec, stages);
        kind_name = spec.pre.empty() ? "byte-level BPE" : fmt::format("byte-level BPE ({})", spec.pre);
        break;
      case TokenizerSpec::Kind::sentencepiece_bpe:
        encoder = make_sentencepiece_encoder(spec, stages);
        kind_name = "SentencePiece BPE";
        break;
      case TokenizerSpec::Kind::bpe:
        encoder = make_bpe_encoder(spec, stages);
        kind_name = "BPE";
        break;
      case TokenizerSpec::Kind::unigram:
        encoder = make_unigram_encoder(spec, stages);
        kind_name = "Unigram";
        break;
      case TokenizerSpec::Kind::wordpiece:
        encoder = make_wordpiece_encoder(spec, stages);
        kind_name = "WordPiece";
        break;
    }
    if (spec.add_bos) prefix.push_back(*spec.bos);
    prefix.insert(prefix.end(), stages.prefix.begin(), stages.prefix.end());
    suffix = stages.suffix;
    if (spec.add_eos) suffix.push_back(*spec.eos);
  }

  std::vector<AddedToken> added_by_type() const {
    std::vector<AddedToken> tokens;
    for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
      const bool special = is_special_type(type_of(spec, id));
      if (!special && type_of(spec, id) != TokenType::user_defined) continue;
      const auto number = static_cast<std::int32_t>(id);
      tokens.push_back({.id = number, .content = std::string(texts.of(number)), .special = special});
      const auto among = [&](const std::vector<std::int32_t>& ids) {
        return std::binary_search(ids.begin(), ids.end(), number);
      };
      tokens.back().strip_right = among(spec.strip_right);
      tokens.back().at_start = among(spec.at_start);
    }
    return tokens;
  }

  // `word`, at byte `at` of the text, has no pieces.
  [[noreturn]] void refuse_word(std::string_view word, std::int64_t at) const {
    constexpr std::size_t kLongest = 40;  // bytes that are shown, and that somebody may have mistyped
    std::vector<std::string> words;       // that a word can begin with
    const std::string& mark = stages.continuing;
    for (std::size_t id = 0; id < spec.pieces.size(); ++id)
      if (type_of(spec, id) == TokenType::normal && (mark.empty() || !spec.pieces[id].starts_with(mark)))
        words.push_back(spec.pieces[id]);
    const std::string meant = word.size() <= kLongest ? nearest_word(word, words) : "";
    std::size_t shown = std::min(word.size(), kLongest);
    while (shown > 0 && shown < word.size() && (static_cast<unsigned char>(word[shown]) & 0xC0) == 0x80) --shown;
    throw Error(ErrorCode::bad_input,
                fmt::format("the word \"{}{}\" at byte {} of the text is not in this vocabulary",
                            display(word.substr(0, shown)), shown < word.size() ? "..." : "", at),
                (meant.empty() ? std::string() : fmt::format("did you mean \"{}\"? ", display(meant))) +
                    fmt::format("this model knows {} words and has no token for others", words.size()));
  }

  // A part of a text, which begins at byte `base` of it and holds no token that is read as written.
  void encode_part(std::string_view part, std::int64_t base, bool special, std::vector<Token>& out) const {
    Draft draft(part, base);
    normalizer.apply(draft);
    added.split(draft.text(), true, special, [&](std::size_t begin, std::size_t end, std::int32_t id) {
      draft.words.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), id});
    });
    cutter.apply(draft);
    const std::size_t first = out.size();
    try {
      encoder->encode(draft.text(), draft.words, out);
    } catch (const NoToken& missing) {
      const std::int64_t at = draft.source(missing.at, missing.end).begin;
      if (spec.kind == TokenizerSpec::Kind::byte_level_bpe)
        throw Error(ErrorCode::bad_input,
                    fmt::format("byte 0x{:02X} at byte {} of the text has no token in this vocabulary",
                                static_cast<std::uint8_t>(draft.text()[static_cast<std::size_t>(missing.at)]), at),
                    "take it out of the text; this model has never seen it");
      if (spec.kind == TokenizerSpec::Kind::wordpiece)
        refuse_word(
            std::string_view(draft.text())
                .substr(static_cast<std::size_t>(missing.at), static_cast<std::size_t>(missing.end - missing.at)),
            at);
      throw Error(ErrorCode::bad_input,
                  fmt::format("the character at byte {} of the text has no token in this vocabulary", at),
                  "take it out of the text; the file names neither byte pieces nor an unknown token for it");
    }
    if (base == 0 && !draft.is_rewritten()) return;
    for (std::size_t i = first; i < out.size(); ++i) {
      const Rewritten::Range range = draft.source(out[i].begin, out[i].end);
      out[i].begin = range.begin;
      out[i].end = range.end;
    }
  }
};

Tokenizer::Tokenizer(TokenizerSpec spec) {
  check(spec);
  model_ = std::make_unique<Model>(std::move(spec));
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<Token> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kLongestText)
    throw Error(ErrorCode::bad_input, fmt::format("a text of {} bytes is too long to tokenize at once", text.size()),
                "give it in parts of less than 2 GiB");
  std::vector<Token> tokens;
  const auto put = [&](const std::vector<std::int32_t>& ids, std::int64_t at) {
    for (const std::int32_t id : ids) tokens.push_back({id, at, at});
  };
  if (options.add_special) put(model_->prefix, 0);
  const bool special = options.parse_special;
  model_->added.split(text, false, special, [&](std::size_t begin, std::size_t end, std::int32_t id) {
    if (id >= 0)
      tokens.push_back({id, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)});
    else
      model_->encode_part(text.substr(begin, end - begin), static_cast<std::int64_t>(begin), special, tokens);
  });
  if (options.add_special) put(model_->suffix, static_cast<std::int64_t>(text.size()));
  return tokens;
}

std::vector<std::int32_t> Tokenizer::encode_ids(std::string_view text, EncodeOptions options) const {
  const std::vector<Token> tokens = encode(text, options);
  std::vector<std::int32_t> ids(tokens.size());
  std::transform(tokens.begin(), tokens.end(), ids.begin(), [](const Token& token) { return token.id; });
  return ids;
}

void Tokenizer::check_id(std::int32_t id) const {
  if (id < 0 || id >= vocabulary())
    throw Error(ErrorCode::bad_input,
                fmt::format("token id {} is outside the vocabulary of {} tokens", id, vocabulary()),
                fmt::format("ids go from 0 to {}", vocabulary() - 1));
}

std::string Tokenizer::bytes(std::int32_t id) const {
  check_id(id);
  return std::string(model_->texts.of(id));
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  for (const std::int32_t id : ids) check_id(id);
  return model_->texts.join(ids);
}

std::int64_t Tokenizer::vocabulary() const { return static_cast<std::int64_t>(model_->spec.pieces.size()); }
std::optional<std::int32_t> Tokenizer::bos() const { return model_->spec.bos; }
std::optional<std::int32_t> Tokenizer::eos() const { return model_->spec.eos; }
std::optional<std::int32_t> Tokenizer::unknown() const { return model_->spec.unknown; }
std::optional<std::int32_t> Tokenizer::padding() const { return model_->spec.padding; }
std::optional<std::int32_t> Tokenizer::mask() const { return model_->spec.mask; }
std::optional<std::int32_t> Tokenizer::separator() const { return model_->spec.separator; }
std::optional<std::int32_t> Tokenizer::classification() const { return model_->spec.classification; }

bool Tokenizer::is_special(std::int32_t id) const {
  if (id < 0 || id >= vocabulary()) return false;
  return is_special_type(type_of(model_->spec, static_cast<std::size_t>(id)));
}

bool Tokenizer::ends_text(std::int32_t id) const {
  if (id < 0 || id >= vocabulary()) return false;
  const std::vector<std::int32_t>& ends = model_->spec.ends;
  return id == model_->spec.eos || std::find(ends.begin(), ends.end(), id) != ends.end();
}

std::string_view Tokenizer::kind_name() const { return model_->kind_name; }
const TokenizerSpec& Tokenizer::spec() const { return model_->spec; }

}  // namespace regard
