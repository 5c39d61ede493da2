// SentencePiece-style BPE (Llama, Gemma): characters are merged into pieces by score; what is no piece falls back to
// bytes. (Kudo and Richardson 2018; google/sentencepiece, bpe_model.cc; llama.cpp reads GGUF files in the same way.)

#include <fmt/core.h>

#include <bit>
#include <bitset>
#include <cmath>
#include <string>
#include <vector>

#include "tensor/error.h"
#include "text/byte_pieces.h"
#include "text/display.h"
#include "text/encoder.h"
#include "text/merge-inl.h"
#include "text/piece_table.h"
#include "text/tokenizer_spec.h"
#include "text/utf8.h"

namespace regard {
namespace {

std::string with_spaces(std::string_view piece) {
  std::string text;
  for (std::size_t at = 0;;) {
    const std::size_t block = piece.find(kSpaceMark, at);
    text += piece.substr(at, block - at);
    if (block == std::string_view::npos) return text;
    text += ' ';
    at = block + kSpaceMark.size();
  }
}

// Higher scores first: a number that falls as the score rises.
std::uint32_t order_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 is 0
  return bits >> 31 != 0 ? bits : ~bits & 0x7FFFFFFFu;
}

class SentencePieceEncoder final : public Encoder {
 public:
  SentencePieceEncoder(const TokenizerSpec& spec, const Stages& stages)
      : spec_(spec), fuse_unknown_(stages.fuse_unknown) {
    if (spec.scores.empty())
      throw Error(ErrorCode::bad_input, "the tokenizer has no scores, which a SentencePiece-style BPE merges by");
    std::size_t bytes = 0;
    for (const std::string& piece : spec.pieces) bytes += piece.size();
    texts_.reserve(bytes);  // never moves afterwards: the table looks into it
    std::vector<std::string_view> texts;
    std::vector<std::int32_t> ids;
    for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
      const std::string& piece = spec.pieces[id];
      const TokenType type = type_of(spec, id);
      if (std::isnan(spec.scores[id]))
        throw Error(ErrorCode::bad_input,
                    fmt::format("the score of token {} '{}' is not a number", id, display(piece)));
      if (type == TokenType::byte) {
        bytes_.set(named_byte(piece), static_cast<std::int32_t>(id));
        continue;
      }
      const std::size_t begin = texts_.size();
      texts_ += with_spaces(piece);
      // A control token must not come out of text that merely spells it, and a space within a word is written U+2581.
      const bool merges = type != TokenType::control && type != TokenType::unknown;
      if (merges && !piece.empty() && piece.find(' ') == std::string::npos) {
        texts.push_back(std::string_view(texts_).substr(begin));
        ids.push_back(static_cast<std::int32_t>(id));
        note_joins(texts.back());
      }
    }
    table_.emplace(texts, ids);
  }

  void encode(std::string_view text, const std::vector<Word>& words, std::vector<Token>& out) const override {
    Merger merger;
    StretchHashes hashes(table_->longest());
    for (const Word& word : words) {
      if (word.token >= 0)
        out.push_back({word.token, word.begin, word.end});
      else
        encode_word(text.substr(0, word.end), word.begin, merger, hashes, out);
    }
  }

 private:
  // Pieces that have a space behind another byte keep a word and the next together.
  void note_joins(std::string_view piece) {
    for (std::size_t i = 1; i < piece.size(); ++i)
      if (piece[i] == ' ') joins_space_.set(static_cast<std::uint8_t>(piece[i - 1]));
  }

  // A text may be cut before a space where no piece holds both it and the byte before it: no merge crosses that place,
  // so the parts are merged by themselves, in small heaps.
  std::size_t part_end(std::string_view text, std::size_t begin) const {
    for (std::size_t i = begin + 1; i < text.size(); ++i)
      if (text[i] == ' ' && !joins_space_.test(static_cast<std::uint8_t>(text[i - 1]))) return i;
    return text.size();
  }

  // What stands at `begin` and behind it.
  void encode_word(std::string_view text, std::size_t begin, Merger& merger, StretchHashes& hashes,
                   std::vector<Token>& out) const {
    while (begin < text.size()) {
      const std::string_view part = text.substr(begin, part_end(text, begin) - begin);
      hashes.read(part);
      const auto find = [&](std::size_t at, std::size_t length) -> std::optional<std::int32_t> {
        if (length > table_->longest()) return std::nullopt;
        return table_->find(hashes.of(at, length), part.substr(at, length));
      };
      merger.clear();
      for (std::size_t at = 0; at < part.size();) {
        const std::size_t length = character_at(part, at).length;
        merger.append(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                      find(at, length).value_or(-1));
        at += length;
      }
      merger.merge([&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
        const auto id = find(left.begin, left.length + right.length);
        if (!id) return std::nullopt;
        return Merge{order_of(spec_.scores[static_cast<std::size_t>(*id)]), *id};
      });
      merger.each([&](const Symbol& symbol) {
        const auto at = static_cast<std::int64_t>(begin + symbol.begin);
        if (symbol.id >= 0)
          out.push_back({symbol.id, at, at + symbol.length});
        else
          fall_back(part.substr(symbol.begin, symbol.length), at, out);
      });
      begin += part.size();
    }
  }

  // A character that is no piece: its bytes, or the unknown token.
  void fall_back(std::string_view character, std::int64_t at, std::vector<Token>& out) const {
    if (bytes_.cover(character)) {
      for (const char c : character) {
        out.push_back({bytes_.id(c), at, at + 1});
        ++at;
      }
    } else if (fuse_unknown_ && !out.empty() && out.back().id == spec_.unknown && out.back().end == at) {
      out.back().end += static_cast<std::int64_t>(character.size());
    } else if (spec_.unknown) {
      out.push_back({*spec_.unknown, at, at + static_cast<std::int64_t>(character.size())});
    } else {
      throw NoToken{at};
    }
  }

  const TokenizerSpec& spec_;
  bool fuse_unknown_;
  std::string texts_;  // of all pieces, one after the other
  BytePieces bytes_;
  std::bitset<256> joins_space_;
  std::optional<PieceTable> table_;
};

}  // namespace

std::unique_ptr<Encoder> make_sentencepiece_encoder(const TokenizerSpec& spec, const Stages& stages) {
  return std::make_unique<SentencePieceEncoder>(spec, stages);
}

}  // namespace regard
