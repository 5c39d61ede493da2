// WordPiece: a word becomes the longest piece it begins with, then the longest that its rest begins with, and so on; a
// word for which that does not come out is unknown. (Schuster and Nakajima 2012; google-research/bert,
// tokenization.py.)

#include <string>
#include <vector>

#include "text/encoder.h"
#include "text/merge_table.h"
#include "text/piece_trie.h"
#include "text/utf8.h"
#include "text/word_memory.h"

namespace regard {
namespace {

using Pieces = std::vector<std::pair<std::string_view, std::int32_t>>;

// Pieces that begin a word, or those that go on in one, without their mark.
PieceTrie trie_of(const TokenizerSpec& spec, const Stages& stages, bool goes_on) {
  Pieces pieces;
  for (const bool added : {true, false})
    for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
      std::string_view piece = spec.pieces[id];
      const TokenType type = type_of(spec, id);
      // What is read as written yields to a piece that is written the same.
      if ((type == TokenType::user_defined) != added || type == TokenType::unused || is_special_type(type)) continue;
      if (goes_on) {
        if (!piece.starts_with(stages.continuing)) continue;
        piece.remove_prefix(stages.continuing.size());
      }
      if (!piece.empty()) pieces.emplace_back(piece, static_cast<std::int32_t>(id));
    }
  return PieceTrie(std::move(pieces));
}

class WordPieceEncoder final : public Encoder {
 public:
  WordPieceEncoder(const TokenizerSpec& spec, const Stages& stages)
      : stages_(stages), begin_(trie_of(spec, stages, false)), go_on_(trie_of(spec, stages, true)) {}

  void encode(std::string_view text, const std::vector<Word>& words, std::vector<Token>& out) const override {
    WordMemory memory(text, words.size());
    for (const Word& word : words)
      memory.append(word, out, [&] {
        const std::size_t first = out.size();
        if (encode_word(text, word, out)) return;
        out.resize(first);
        if (!stages_.unknown) throw NoToken{word.begin, word.end};
        out.push_back({*stages_.unknown, word.begin, word.end});
      });
  }

 private:
  bool encode_word(std::string_view text, const Word& word, std::vector<Token>& out) const {
    int characters = 0;
    for (std::size_t at = word.begin; at < word.end; at += character_at(text.substr(0, word.end), at).length)
      if (++characters > stages_.longest_word) return false;
    for (std::uint32_t at = word.begin; at < word.end;) {
      const PieceTrie& trie = at == word.begin ? begin_ : go_on_;
      std::uint32_t node = PieceTrie::kRoot, end = at;
      std::int32_t piece = -1;
      for (std::uint32_t i = at; i < word.end;) {
        node = trie.step(node, static_cast<std::uint8_t>(text[i]));
        if (node == PieceTrie::kNone) break;
        ++i;
        if (trie.value(node) < 0) continue;
        piece = trie.value(node);
        end = i;
      }
      if (piece < 0) return false;
      out.push_back({piece, at, end});
      at = end;
    }
    return true;
  }

  const Stages& stages_;
  PieceTrie begin_, go_on_;
};

}  // namespace

std::unique_ptr<Encoder> make_wordpiece_encoder(const TokenizerSpec& spec, const Stages& stages) {
  return std::make_unique<WordPieceEncoder>(spec, stages);
}

}  // namespace regard
