#include "weights/tokenizer_json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "text/byte_pieces.h"
#include "weights/gguf.h"
#include "weights/piece_list.h"
#include "weights/tokenizer_json_stages.h"

namespace regard {
namespace {

using Kind = TokenizerSpec::Kind;
using Json = nlohmann::json;

// Old files do not name their model.
std::string_view type_of_model(const JsonPlace& model) {
  if (const auto type = model.find("type")) return type->string();
  if (model.find("merges")) return "BPE";
  return model.at("vocab").is_array() ? "Unigram" : "WordPiece";
}

// {"piece": id, ...}
void read_vocabulary(const JsonPlace& vocabulary, bool byte_pieces, PieceList& pieces) {
  if (!vocabulary.is_object()) throw vocabulary.error("should be an object");
  for (const auto& [piece, id] : vocabulary.raw().get_ref<const Json::object_t&>()) {
    if (!id.is_number_integer())
      throw vocabulary.error(fmt::format("gives {} an id that is no number", in_quotes(piece)));
    const bool byte = byte_pieces && named_byte(piece) >= 0;
    pieces.add(piece, id.get<std::int64_t>(), byte ? TokenType::byte : TokenType::normal);
  }
}

// "left right" or ["left", "right"], the strongest first.
void read_merges(const JsonPlace& merges, std::string_view continuing, const PieceList& pieces, TokenizerSpec& spec) {
  if (!merges.is_array()) throw merges.error("should be an array");
  const Json::array_t& list = merges.raw().get_ref<const Json::array_t&>();
  spec.ranked.reserve(list.size());
  std::string joined;
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    const auto fail = [&](std::string_view why) { throw merges.at(rank).error(why); };
    std::string_view left, right;
    if (const Json& merge = list[rank]; merge.is_string()) {
      const std::string_view text = merge.get_ref<const std::string&>();
      const std::size_t gap = text.find(' ');
      if (gap == std::string_view::npos || text.find(' ', gap + 1) != std::string_view::npos)
        fail("is not two pieces with a space between them");
      left = text.substr(0, gap);
      right = text.substr(gap + 1);
    } else {
      if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string())
        fail("is not two pieces");
      left = merge[0].get_ref<const std::string&>();
      right = merge[1].get_ref<const std::string&>();
    }
    if (!right.starts_with(continuing)) fail("has a second piece that does not go on in a word");
    joined.assign(left).append(right.substr(continuing.size()));
    const auto id = [&](std::string_view piece) {
      const auto found = pieces.find(piece);
      if (!found) fail(fmt::format("names {}, which is not in the vocabulary", in_quotes(piece)));
      return *found;
    };
    spec.ranked.push_back({id(left), id(right), id(joined)});
  }
}

void read_bpe(const JsonPlace& model, bool byte_level, PieceList& pieces, TokenizerSpec& spec) {
  Stages& stages = *spec.stages;
  spec.kind = byte_level ? Kind::byte_level_bpe : Kind::bpe;
  if (const auto dropout = model.find("dropout"); dropout && dropout->number() != 0)
    throw dropout->error("leaves out merges at random, which is not supported", ErrorCode::unsupported);
  stages.byte_fallback = model.boolean_or("byte_fallback", false);
  stages.whole_words = model.boolean_or("ignore_merges", false);
  stages.fuse_unknown = model.boolean_or("fuse_unk", false);
  stages.continuing = model.string_or("continuing_subword_prefix", "");
  stages.word_end = model.string_or("end_of_word_suffix", "");
  if (byte_level && !(stages.continuing.empty() && stages.word_end.empty()))
    throw model.error("marks the ends of words in letters for bytes, which is not supported", ErrorCode::unsupported);
  read_vocabulary(model.at("vocab"), stages.byte_fallback && !byte_level, pieces);
  read_merges(model.at("merges"), stages.continuing, pieces, spec);
  if (const auto unknown = model.find("unk_token")) stages.unknown = pieces.find(unknown->string());
}

void read_unigram(const JsonPlace& model, PieceList& pieces, TokenizerSpec& spec) {
  Stages& stages = *spec.stages;
  spec.kind = Kind::unigram;
  stages.byte_fallback = model.boolean_or("byte_fallback", false);
  const JsonPlace vocabulary = model.at("vocab");
  if (!vocabulary.is_array()) throw vocabulary.error("should be an array");
  for (const Json& entry : vocabulary.raw().get_ref<const Json::array_t&>()) {
    const std::size_t id = pieces.size();
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      throw vocabulary.at(id).error("is not a piece and its score");
    const std::string& piece = entry[0].get_ref<const std::string&>();
    const bool byte = stages.byte_fallback && named_byte(piece) >= 0;
    pieces.add(piece, static_cast<std::int64_t>(id), byte ? TokenType::byte : TokenType::normal);
    spec.exact_scores.push_back(entry[1].get<double>());
  }
  if (const auto unknown = model.find("unk_id")) {
    const std::int64_t id = unknown->integer();
    if (id < 0 || static_cast<std::uint64_t>(id) >= pieces.size()) throw unknown->error("is no id of the vocabulary");
    stages.unknown = static_cast<std::int32_t>(id);
    pieces.set_type(*stages.unknown, TokenType::unknown);
  }
}

void read_wordpiece(const JsonPlace& model, PieceList& pieces, TokenizerSpec& spec) {
  Stages& stages = *spec.stages;
  spec.kind = Kind::wordpiece;
  stages.continuing = model.string_or("continuing_subword_prefix", "##");
  const std::int64_t longest = model.integer_or("max_input_chars_per_word", 100);
  if (longest < 0 || longest > 1 << 20) throw model.at("max_input_chars_per_word").error("is out of range");
  stages.longest_word = static_cast<int>(longest);
  read_vocabulary(model.at("vocab"), false, pieces);
  stages.unknown = pieces.find(model.string_or("unk_token", "[UNK]"));
}

void read_added(const JsonPlace& list, PieceList& pieces, std::vector<AddedToken>& added) {
  for (const JsonPlace& place : list.elements()) {
    AddedToken token;
    token.content = place.at("content").string();
    if (token.content.empty()) continue;  // never found in a text
    token.special = place.boolean_or("special", false);
    token.normalized = place.boolean_or("normalized", !token.special);
    token.single_word = place.boolean_or("single_word", false);
    token.strip_left = place.boolean_or("lstrip", false);
    token.strip_right = place.boolean_or("rstrip", false);
    // A token that the model knows has the model's id, whatever is written beside it here.
    const auto known = pieces.find(token.content);
    const std::int64_t id = known ? *known : place.at("id").integer();
    if (token.special || !known)
      pieces.add(token.content, id, token.special ? TokenType::control : TokenType::user_defined);
    token.id = static_cast<std::int32_t>(id);
    added.push_back(std::move(token));
  }
}

}  // namespace

TokenizerSpec tokenizer_from_json(const std::filesystem::path& path) {
  const JsonPlace root = read_json(path);
  const JsonPlace model = root.at("model");
  TokenizerSpec spec;
  Stages& stages = spec.stages.emplace();
  const bool byte_level = read_stages(root, stages);
  const auto added = root.find("added_tokens");
  PieceList pieces(root.file(), model.at("vocab").size() + (added ? added->size() : 0));
  const std::string_view type = type_of_model(model);
  if (byte_level && type != "BPE")
    throw root.at("pre_tokenizer")
        .error("spells words in letters for bytes, which only BPE is supported with", ErrorCode::unsupported);
  if (type == "BPE")
    read_bpe(model, byte_level, pieces, spec);
  else if (type == "Unigram")
    read_unigram(model, pieces, spec);
  else if (type == "WordPiece")
    read_wordpiece(model, pieces, spec);
  else
    throw model.error(fmt::format("is the tokenizer model {}, which is not supported", in_quotes(type)),
                      ErrorCode::unsupported, "supported are BPE, Unigram and WordPiece");
  stages.added.emplace();
  if (added) read_added(*added, pieces, *stages.added);
  spec.unknown = stages.unknown;
  pieces.move_to(spec);
  if (spec.kind == Kind::unigram) spec.exact_scores.resize(spec.pieces.size());  // what was added has none
  return spec;
}

}  // namespace regard
