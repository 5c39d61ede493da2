#include "weights/sentencepiece_model.h"

#include <fmt/core.h>

#include "tensor/error.h"
#include "weights/checked_json.h"
#include "weights/proto_reader.h"

namespace regard {
namespace {

// The fields that matter, with the defaults of sentencepiece_model.proto.
struct Options {
  std::uint64_t model_type = 1;  // 1 Unigram, 2 BPE, 3 words, 4 characters
  bool suffix_spaces = false, escape = true;
  std::int32_t unknown = 0, bos = 1, eos = 2, padding = -1;
  SentencePieceOptions stages;
};

void read_piece(ProtoReader piece, const std::string& file, TokenizerSpec& spec) {
  std::string_view text;
  float score = 0;
  std::uint64_t type = 1;
  while (piece.next()) {
    if (piece.field() == 1) text = piece.bytes();
    if (piece.field() == 2) score = piece.number();
    if (piece.field() == 3) type = piece.integer();
  }
  if (type < 1 || type > 6)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: piece {} has the type {}, which is none of 1 to 6", file, spec.pieces.size(), type));
  spec.pieces.emplace_back(text);
  spec.scores.push_back(score);
  spec.types.push_back(static_cast<TokenType>(type));
}

void read_trainer(ProtoReader trainer, Options& options) {
  const auto id = [&] { return static_cast<std::int32_t>(trainer.integer()); };
  while (trainer.next()) switch (trainer.field()) {
      case 3:
        options.model_type = trainer.integer();
        break;
      case 24:
        options.suffix_spaces = trainer.integer() != 0;
        break;
      case 35:
        options.stages.byte_fallback = trainer.integer() != 0;
        break;
      case 40:
        options.unknown = id();
        break;
      case 41:
        options.bos = id();
        break;
      case 42:
        options.eos = id();
        break;
      case 43:
        options.padding = id();
        break;
      default:
        break;  // how it was trained
    }
}

void read_normalizer(ProtoReader normalizer, Options& options) {
  while (normalizer.next()) switch (normalizer.field()) {
      case 2:
        options.stages.charsmap = normalizer.bytes();
        break;
      case 3:
        options.stages.dummy_prefix = normalizer.integer() != 0;
        break;
      case 4:
        options.stages.squeeze = normalizer.integer() != 0;
        break;
      case 5:
        options.escape = normalizer.integer() != 0;
        break;
      default:
        break;
    }
}

}  // namespace

Stages sentencepiece_stages(const SentencePieceOptions& options) {
  using Kind = NormalizerStep::Kind;
  Stages stages;
  std::vector<NormalizerStep>& steps = stages.normalizers;
  if (!options.charsmap.empty()) steps.push_back({.kind = Kind::charsmap, .content = options.charsmap});
  if (options.squeeze) steps.push_back({.kind = Kind::squeeze});
  if (options.dummy_prefix) steps.push_back({.kind = Kind::prepend, .content = " "});
  // The BPE model writes spaces as spaces, the Unigram model as its pieces do.
  if (options.bpe)
    steps.push_back({.kind = Kind::replace, .pattern = std::string(kSpaceMark), .content = " "});
  else
    steps.push_back({.kind = Kind::replace, .pattern = " ", .content = std::string(kSpaceMark)});
  stages.byte_fallback = options.byte_fallback;
  stages.fuse_unknown = true;
  stages.spelling.space = kSpaceMark;
  return stages;
}

TokenizerSpec tokenizer_from_sentencepiece(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string bytes = read_whole_file(path);
  TokenizerSpec spec;
  Options options;
  for (ProtoReader model(bytes, file); model.next();) {
    if (model.field() == 1) read_piece(model.message(), file, spec);
    if (model.field() == 2) read_trainer(model.message(), options);
    if (model.field() == 3) read_normalizer(model.message(), options);
  }
  const auto refuse = [&](std::string_view what) {
    throw Error(ErrorCode::unsupported, fmt::format("{}: a SentencePiece model {} is not supported", file, what));
  };
  if (options.model_type != 1 && options.model_type != 2) refuse("of words or characters");
  if (options.suffix_spaces) refuse("with spaces behind words ('treat_whitespace_as_suffix')");
  if (!options.escape) refuse("with plain spaces in its pieces ('escape_whitespaces' is false)");
  spec.kind = options.model_type == 2 ? TokenizerSpec::Kind::sentencepiece_bpe : TokenizerSpec::Kind::unigram;
  options.stages.bpe = options.model_type == 2;
  spec.stages = sentencepiece_stages(options.stages);
  const auto named = [&](std::string_view name, std::int32_t id) -> std::optional<std::int32_t> {
    if (id < 0) return std::nullopt;
    if (static_cast<std::size_t>(id) >= spec.pieces.size())
      throw Error(ErrorCode::bad_input, fmt::format("{}: the id of the {} token is {}, but there are {} pieces", file,
                                                    name, id, spec.pieces.size()));
    return id;
  };
  spec.unknown = spec.stages->unknown = named("unknown", options.unknown);
  spec.bos = named("BOS", options.bos);
  spec.eos = named("EOS", options.eos);
  spec.padding = named("padding", options.padding);
  return spec;
}

}  // namespace regard
