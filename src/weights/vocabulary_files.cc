#include "weights/vocabulary_files.h"

#include <fmt/core.h>

#include "text/pretokenizer.h"
#include "weights/checked_json.h"
#include "weights/gguf.h"
#include "weights/piece_list.h"
#include "weights/sentencepiece_model.h"

namespace regard {
namespace {

// `visit(line, number)` for each line, without its end.
template <class Visit>
void each_line(std::string_view text, const Visit& visit) {
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line, number);
    at = end + 1;
  }
}

PieceList pieces_from(const std::filesystem::path& path) {
  const JsonPlace root = read_json(path);
  const std::vector<std::string> keys = root.keys();
  PieceList pieces(root.file(), keys.size());
  for (const std::string& piece : keys) pieces.add(piece, root.at(piece).integer());
  return pieces;
}

}  // namespace

TokenizerSpec tokenizer_from_merges(const std::filesystem::path& vocabulary, const std::filesystem::path& merges,
                                    const ByteLevelOptions& options) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::byte_level_bpe;
  PieceList pieces = pieces_from(vocabulary);
  const std::string file = merges.string();
  each_line(read_whole_file(merges), [&](std::string_view line, std::size_t number) {
    if (line.empty() || (number == 1 && line.starts_with("#version"))) return;
    const auto fail = [&](std::string why) {
      throw Error(ErrorCode::bad_input, fmt::format("{}: line {} {}: {}", file, number, in_quotes(line), why));
    };
    const std::size_t gap = line.find(' ');
    if (gap == std::string_view::npos || gap == 0 || gap + 1 == line.size() ||
        line.find(' ', gap + 1) != std::string_view::npos)
      fail("not two pieces with a space between them");
    const auto id = [&](std::string_view piece) {
      const auto found = pieces.find(piece);
      if (!found) fail(fmt::format("{} is not in {}", in_quotes(piece), vocabulary.filename().string()));
      return *found;
    };
    const std::string_view left = line.substr(0, gap), right = line.substr(gap + 1);
    const std::int32_t first = id(left), second = id(right);
    spec.ranked.push_back({first, second, id(std::string(left).append(right))});
  });
  Stages& stages = spec.stages.emplace();
  if (options.qwen2) stages.normalizers.push_back({.kind = NormalizerStep::Kind::nfc});
  if (options.add_prefix_space) stages.cuts.push_back({.kind = CutStep::Kind::prefix_space});
  stages.cuts.push_back({.kind = CutStep::Kind::split,
                         .pattern = std::string(options.qwen2 ? kQwen2Expression : kGpt2Expression),
                         .expression = true});
  stages.spelling.byte_level = true;
  stages.added.emplace();
  pieces.move_to(spec);
  return spec;
}

TokenizerSpec tokenizer_from_word_list(const std::filesystem::path& vocabulary, const WordPieceOptions& options) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::wordpiece;
  each_line(read_whole_file(vocabulary), [&](std::string_view line, std::size_t) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    spec.pieces.emplace_back(line);
  });
  spec.types.assign(spec.pieces.size(), TokenType::normal);
  Stages& stages = spec.stages.emplace();
  using Kind = NormalizerStep::Kind;
  stages.normalizers.push_back({.kind = Kind::clean});
  if (options.space_ideographs) stages.normalizers.push_back({.kind = Kind::space_ideographs});
  if (options.strip_accents.value_or(options.lowercase)) stages.normalizers.push_back({.kind = Kind::strip_accents});
  if (options.lowercase) stages.normalizers.push_back({.kind = Kind::lowercase});
  stages.cuts.push_back({.kind = CutStep::Kind::bert});
  stages.continuing = "##";
  stages.spelling.word_marks = true;
  stages.added.emplace();
  return spec;
}

TokenizerSpec tokenizer_from_marian(const std::filesystem::path& model, const std::filesystem::path& vocabulary) {
  TokenizerSpec spec = tokenizer_from_sentencepiece(model);
  if (spec.kind != TokenizerSpec::Kind::unigram)
    throw Error(ErrorCode::unsupported, fmt::format("{}: a Marian tokenizer that is not Unigram", model.string()));
  PieceList pieces = pieces_from(vocabulary);
  const std::optional<std::int32_t> unknown = pieces.find("<unk>"), eos = pieces.find("</s>");
  if (!unknown || !eos)
    throw Error(ErrorCode::bad_input, fmt::format("{}: there is no '<unk>' or no '</s>'", vocabulary.string()));
  // The model cuts texts, the vocabulary numbers the pieces; it holds the target language's pieces, too.
  TokenizerSpec result;
  result.kind = spec.kind;
  result.stages = std::move(spec.stages);
  result.scores.resize(pieces.size());
  for (std::size_t id = 0; id < pieces.size(); ++id)
    if (pieces.type(static_cast<std::int32_t>(id)) == TokenType::normal)
      pieces.set_type(static_cast<std::int32_t>(id), TokenType::unused);
  for (std::size_t i = 0; i < spec.pieces.size(); ++i) {
    if (spec.types[i] != TokenType::normal && spec.types[i] != TokenType::user_defined) continue;
    if (const auto id = pieces.find(spec.pieces[i])) {
      pieces.set_type(*id, spec.types[i]);
      result.scores[static_cast<std::size_t>(*id)] = spec.scores[i];
    } else if (spec.types[i] == TokenType::normal) {
      result.aliases.push_back({spec.pieces[i], spec.scores[i], *unknown});
    }
  }
  pieces.set_type(*unknown, TokenType::unknown);
  pieces.set_type(*eos, TokenType::control);
  if (const auto padding = pieces.find("<pad>")) {
    pieces.set_type(*padding, TokenType::control);
    result.padding = *padding;
  }
  pieces.move_to(result);
  // ">>deu<<" at the beginning of a text says into which language (MarianTokenizer, remove_language_code).
  for (std::size_t id = 0; id < result.pieces.size(); ++id) {
    const std::string& piece = result.pieces[id];
    if (result.types[id] != TokenType::unused || !piece.starts_with(">>") || !piece.ends_with("<<")) continue;
    result.types[id] = TokenType::control;
    result.at_start.push_back(static_cast<std::int32_t>(id));
  }
  result.unknown = result.stages->unknown = unknown;
  result.eos = eos;
  result.add_eos = true;
  return result;
}

}  // namespace regard
