#include "text/tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tensor/error.h"
#include "text/encoder.h"
#include "text/special_tokens.h"

namespace regard {
namespace {

// A text is scanned for special tokens at every byte; one of a megabyte would make that a trap.
constexpr std::size_t kLongestSpecial = 4096;
constexpr auto kLongestText = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());

[[noreturn]] void fail(std::string message) {
  throw Error(ErrorCode::bad_input, std::move(message), "the file is damaged or was written by a faulty converter");
}

bool is_special_type(TokenType type) { return type == TokenType::control || type == TokenType::unknown; }

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
    bytes += spec.pieces[id].size();
  }
  if (bytes > kLongestText)
    fail(fmt::format("the tokenizer's pieces have {} bytes together, too many to index", bytes));
  const std::pair<std::string_view, std::optional<std::int32_t>> named[] = {
      {"BOS", spec.bos}, {"EOS", spec.eos}, {"unknown", spec.unknown}, {"padding", spec.padding}};
  for (const auto& [name, id] : named)
    if (id && (*id < 0 || static_cast<std::size_t>(*id) >= n))
      fail(fmt::format("the {} token's id {} is outside the vocabulary of {} pieces", name, *id, n));
  if (spec.add_bos && !spec.bos) fail("the tokenizer puts a BOS token before every text but does not name one");
  if (spec.add_eos && !spec.eos) fail("the tokenizer puts an EOS token behind every text but does not name one");
}

}  // namespace

struct Tokenizer::Model {
  TokenizerSpec spec;
  std::unique_ptr<Encoder> encoder;
  SpecialTokens always;        // user-defined pieces: read as written in any text
  SpecialTokens with_special;  // those and control and unknown tokens
  std::string kind_name;
};

Tokenizer::Tokenizer(TokenizerSpec spec) {
  check(spec);
  auto model = std::make_unique<Model>();
  model->spec = std::move(spec);
  const TokenizerSpec& kept = model->spec;
  if (kept.kind == TokenizerSpec::Kind::byte_level_bpe) {
    model->encoder = make_byte_level_encoder(kept);
    model->kind_name = fmt::format("byte-level BPE ({})", kept.pre);
  } else {
    model->encoder = make_sentencepiece_encoder(kept);
    model->kind_name = "SentencePiece BPE";
  }
  for (std::size_t id = 0; id < kept.pieces.size(); ++id) {
    const TokenType type = type_of(kept, id);
    if (!is_special_type(type) && type != TokenType::user_defined) continue;
    const std::string text =
        is_special_type(type) ? kept.pieces[id] : model->encoder->bytes(static_cast<std::int32_t>(id));
    if (text.empty()) continue;
    if (text.size() > kLongestSpecial)
      fail(fmt::format("special token {} has {} bytes, more than {}", id, text.size(), kLongestSpecial));
    model->with_special.add(text, static_cast<std::int32_t>(id));
    if (type == TokenType::user_defined) model->always.add(text, static_cast<std::int32_t>(id));
  }
  model->with_special.finish();
  model->always.finish();
  model_ = std::move(model);
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<Token> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kLongestText)
    throw Error(ErrorCode::bad_input, fmt::format("a text of {} bytes is too long to tokenize at once", text.size()),
                "give it in parts of less than 2 GiB");
  const SpecialTokens& specials = options.parse_special ? model_->with_special : model_->always;
  std::vector<Token> tokens;
  if (options.add_special && model_->spec.add_bos) tokens.push_back({*model_->spec.bos, 0, 0});
  bool opens = true;
  for (std::size_t at = 0; at < text.size();) {
    const auto special = specials.find(text, at);
    const std::size_t end = special ? special->begin : text.size();
    if (end > at) model_->encoder->encode(text.substr(at, end - at), static_cast<std::int64_t>(at), opens, tokens);
    if (!special) break;
    tokens.push_back({special->id, static_cast<std::int64_t>(special->begin), static_cast<std::int64_t>(special->end)});
    opens = true;
    at = special->end;
  }
  const auto n = static_cast<std::int64_t>(text.size());
  if (options.add_special && model_->spec.add_eos) tokens.push_back({*model_->spec.eos, n, n});
  return tokens;
}

std::vector<std::int32_t> Tokenizer::encode_ids(std::string_view text, EncodeOptions options) const {
  const std::vector<Token> tokens = encode(text, options);
  std::vector<std::int32_t> ids(tokens.size());
  std::transform(tokens.begin(), tokens.end(), ids.begin(), [](const Token& token) { return token.id; });
  return ids;
}

std::string Tokenizer::bytes(std::int32_t id) const {
  const TokenizerSpec& spec = model_->spec;
  if (id < 0 || id >= vocabulary())
    throw Error(ErrorCode::bad_input,
                fmt::format("token id {} is outside the vocabulary of {} tokens", id, vocabulary()),
                fmt::format("ids go from 0 to {}", vocabulary() - 1));
  const TokenType type = type_of(spec, static_cast<std::size_t>(id));
  if (is_special_type(type)) return spec.pieces[static_cast<std::size_t>(id)];
  return model_->encoder->bytes(id);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) text += bytes(id);
  return text;
}

std::int64_t Tokenizer::vocabulary() const { return static_cast<std::int64_t>(model_->spec.pieces.size()); }
std::optional<std::int32_t> Tokenizer::bos() const { return model_->spec.bos; }
std::optional<std::int32_t> Tokenizer::eos() const { return model_->spec.eos; }
std::optional<std::int32_t> Tokenizer::unknown() const { return model_->spec.unknown; }
std::optional<std::int32_t> Tokenizer::padding() const { return model_->spec.padding; }

bool Tokenizer::is_special(std::int32_t id) const {
  if (id < 0 || id >= vocabulary()) return false;
  return is_special_type(type_of(model_->spec, static_cast<std::size_t>(id)));
}

bool Tokenizer::ends_text(std::int32_t id) const {
  if (id < 0 || id >= vocabulary()) return false;
  if (id == model_->spec.eos) return true;
  // Files name one EOS, but a conversation's turn often ends with another control token.
  static constexpr std::string_view kEnds[] = {"<|endoftext|>", "<|im_end|>",    "<|eot_id|>",      "<|eom_id|>",
                                               "<|end|>",       "<end_of_turn>", "<|end_of_text|>", "</s>"};
  const std::string_view piece = model_->spec.pieces[static_cast<std::size_t>(id)];
  return is_special(id) && std::find(std::begin(kEnds), std::end(kEnds), piece) != std::end(kEnds);
}

std::string_view Tokenizer::kind_name() const { return model_->kind_name; }
const TokenizerSpec& Tokenizer::spec() const { return model_->spec; }

}  // namespace regard
