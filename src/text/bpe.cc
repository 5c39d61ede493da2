// BPE over characters, pairs of pieces merged by rank (Hugging Face's form of Llama, Gemma, Phi-3); what is no piece
// falls back to bytes or is unknown.

#include <bitset>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/byte_pieces.h"
#include "text/encoder.h"
#include "text/merge-inl.h"
#include "text/merge_table.h"
#include "text/tokenizer_spec.h"
#include "text/utf8.h"
#include "text/word_memory.h"

namespace regard {
namespace {

class BpeEncoder final : public Encoder {
 public:
  BpeEncoder(const TokenizerSpec& spec, const Stages& stages)
      : pieces_(spec.pieces), stages_(stages), ids_(ids_of_pieces(spec)), merges_(spec, ids_) {
    for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
      const std::string& piece = spec.pieces[id];
      if (stages.byte_fallback && type_of(spec, id) == TokenType::byte)
        bytes_.set(named_byte(piece), static_cast<std::int32_t>(id));
      if (piece.empty() || is_special_type(type_of(spec, id))) continue;
      const Character c = character_at(piece, 0);
      if (c.length == piece.size() && c.code != kInvalidByte) characters_[c.code] = *ids_.find(pieces_, piece);
    }
    // A word may be cut before a block where no merge makes a piece that holds both it and the byte before it: no
    // merge crosses that place, so the parts are merged by themselves, in small heaps.
    cuts_ = stages.continuing.empty() && stages.word_end.empty() && ids_.find(pieces_, kSpaceMark).has_value();
    merges_.each([&](std::int32_t id) {
      const std::string_view piece = spec.pieces[static_cast<std::size_t>(id)];
      for (std::size_t at = 1; (at = piece.find(kSpaceMark, at)) != std::string_view::npos; ++at)
        joins_block_.set(static_cast<std::uint8_t>(piece[at - 1]));
    });
  }

  void encode(std::string_view text, const std::vector<Word>& words, std::vector<Token>& out) const override {
    Merger merger;
    WordMemory memory(text, cuts_ ? text.size() / 4 : words.size());
    for (const Word& word : words) {
      if (word.token >= 0) {
        out.push_back({word.token, word.begin, word.end});
        continue;
      }
      if (stages_.whole_words)
        if (const auto whole = ids_.find(pieces_, text.substr(word.begin, word.end - word.begin))) {
          out.push_back({*whole, word.begin, word.end});
          continue;
        }
      for (Word part{word.begin, word.begin}; part.begin < word.end; part.begin = part.end) {
        part.end = cuts_ ? part_end(text, part.begin, word.end) : word.end;
        memory.append(part, out,
                      [&] { encode_part(text.substr(part.begin, part.end - part.begin), part.begin, merger, out); });
      }
    }
  }

 private:
  std::uint32_t part_end(std::string_view text, std::uint32_t begin, std::uint32_t end) const {
    std::size_t at = begin;
    while ((at = text.find(kSpaceMark, at + 1)) < end)
      if (!joins_block_.test(static_cast<std::uint8_t>(text[at - 1]))) return static_cast<std::uint32_t>(at);
    return end;
  }

  // The piece of a character by itself, or -1.
  std::int32_t piece_of(std::string_view character, std::uint32_t code, bool first, bool last) const {
    if (stages_.continuing.empty() && stages_.word_end.empty()) {
      const auto found = characters_.find(code);
      return found == characters_.end() ? -1 : found->second;
    }
    std::string piece(first ? "" : stages_.continuing);
    piece += character;
    if (last) piece += stages_.word_end;
    return ids_.find(pieces_, piece).value_or(-1);
  }

  void encode_part(std::string_view part, std::int64_t begin, Merger& merger, std::vector<Token>& out) const {
    merger.clear();
    std::uint32_t unknown = 0, unknown_begin = 0;  // bytes of the unknown token that may still grow
    const auto put_unknown = [&] {
      if (unknown > 0) merger.append(unknown_begin, unknown, *stages_.unknown);
      unknown = 0;
    };
    for (std::size_t i = 0; i < part.size();) {
      const Character c = character_at(part, i);
      const std::string_view character = part.substr(i, c.length);
      const auto at = static_cast<std::uint32_t>(i);
      const std::int32_t id = piece_of(character, c.code, i == 0, i + c.length == part.size());
      i += c.length;
      if (id >= 0) {
        put_unknown();
        merger.append(at, c.length, id);
      } else if (stages_.byte_fallback && bytes_.cover(character)) {
        put_unknown();
        for (std::uint32_t b = 0; b < c.length; ++b) merger.append(at + b, 1, bytes_.id(character[b]));
      } else if (!stages_.unknown) {
        throw NoToken{begin + at};
      } else {
        if (!stages_.fuse_unknown) put_unknown();
        if (unknown == 0) unknown_begin = at;
        unknown += c.length;
      }
    }
    put_unknown();
    merger.merge([&](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
    merger.each([&](const Symbol& symbol) {
      out.push_back({symbol.id, begin + symbol.begin, begin + symbol.begin + symbol.length});
    });
  }

  const std::vector<std::string>& pieces_;
  const Stages& stages_;
  PieceIndex ids_;
  std::unordered_map<std::uint32_t, std::int32_t> characters_;
  MergeTable merges_;
  BytePieces bytes_;
  std::bitset<256> joins_block_;
  bool cuts_ = false;
};

}  // namespace

std::unique_ptr<Encoder> make_bpe_encoder(const TokenizerSpec& spec, const Stages& stages) {
  return std::make_unique<BpeEncoder>(spec, stages);
}

}  // namespace regard
