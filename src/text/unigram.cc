// Unigram language model: of all ways to write a text in pieces, the one whose scores have the largest sum. (Kudo 2018,
// "Subword regularization"; google/sentencepiece, unigram_model.cc, EncodeOptimized.)

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "tensor/error.h"
#include "text/byte_pieces.h"
#include "text/display.h"
#include "text/encoder.h"
#include "text/piece_trie.h"
#include "text/utf8.h"

namespace regard {
namespace {

constexpr double kUnknownPenalty = 10;
// Every place of a text walks along the pieces that begin there: one of a megabyte would make that a trap.
constexpr std::size_t kLongestPiece = 4096;

// `Score` is what sums are kept in: float for SentencePiece's own files, double for Hugging Face's. Near ties decide
// which pieces are taken, so the precision is part of the result.
template <class Score>
class UnigramEncoder final : public Encoder {
 public:
  UnigramEncoder(const TokenizerSpec& spec, const Stages& stages, const std::vector<Score>& scores)
      : stages_(stages), pieces_(static_cast<std::int32_t>(spec.pieces.size())), scores_(scores) {
    if (scores.size() != spec.pieces.size())
      throw Error(ErrorCode::bad_input, "the tokenizer has no scores, which a Unigram model chooses by");
    std::vector<std::pair<std::string_view, std::int32_t>> texts;
    const auto add = [&](std::string_view piece, std::size_t value) {
      if (piece.size() > kLongestPiece)
        throw Error(ErrorCode::bad_input,
                    fmt::format("piece {} has {} bytes, more than {}", value, piece.size(), kLongestPiece));
      texts.emplace_back(piece, static_cast<std::int32_t>(value));
    };
    Score lowest = std::numeric_limits<Score>::max();
    for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
      if (!std::isfinite(scores_[id]))
        throw Error(ErrorCode::bad_input,
                    fmt::format("the score of token {} '{}' is not a finite number", id, display(spec.pieces[id])));
      const TokenType type = type_of(spec, id);
      if (type == TokenType::byte && stages.byte_fallback)
        bytes_.set(named_byte(spec.pieces[id]), static_cast<std::int32_t>(id));
      // A control token must not come out of text that merely spells it.
      if (type != TokenType::normal) continue;
      add(spec.pieces[id], id);
      lowest = std::min(lowest, scores_[id]);
    }
    for (const AliasPiece& alias : spec.aliases) {
      if (!std::isfinite(alias.score) || alias.id < 0 || alias.id >= pieces_)
        throw Error(ErrorCode::bad_input,
                    fmt::format("the piece '{}' of the tokenizer has no use", display(alias.piece)));
      add(alias.piece, scores_.size());
      scores_.push_back(static_cast<Score>(alias.score));
      alias_ids_.push_back(alias.id);
      lowest = std::min(lowest, scores_.back());
    }
    if (texts.empty()) lowest = 0;
    unknown_score_ = lowest - static_cast<Score>(kUnknownPenalty);
    trie_.emplace(std::move(texts));
  }

  void encode(std::string_view text, const std::vector<Word>& words, std::vector<Token>& out) const override {
    std::vector<Node> best;
    for (const Word& word : words) {
      if (word.token >= 0)
        out.push_back({word.token, word.begin, word.end});
      else
        encode_word(text.substr(word.begin, word.end - word.begin), word.begin, best, out);
    }
  }

 private:
  // The best way to write the text up to a byte.
  struct Node {
    Score score = 0;
    std::int32_t piece = kUnreached;  // the last one
    std::uint32_t begin = 0;          // of it
  };
  static constexpr std::int32_t kUnreached = -2, kUnknown = -1;

  void encode_word(std::string_view word, std::int64_t base, std::vector<Node>& best, std::vector<Token>& out) const {
    best.assign(word.size() + 1, Node{});
    const auto offer = [&](std::size_t end, std::size_t begin, std::int32_t piece, Score score) {
      Node& node = best[end];
      if (node.piece != kUnreached && !(score > node.score)) return;  // of equals the first
      node = {score, piece, static_cast<std::uint32_t>(begin)};
    };
    for (std::size_t begin = 0; begin < word.size();) {
      const Score before = best[begin].score;
      const std::size_t length = character_at(word, begin).length;
      bool covers_character = false;
      std::uint32_t node = PieceTrie::kRoot;
      for (std::size_t end = begin; end < word.size();) {
        node = trie_->step(node, static_cast<std::uint8_t>(word[end]));
        if (node == PieceTrie::kNone) break;
        ++end;
        const std::int32_t piece = trie_->value(node);
        if (piece < 0) continue;
        offer(end, begin, piece, scores_[static_cast<std::size_t>(piece)] + before);
        covers_character |= end - begin == length;
      }
      if (!covers_character) offer(begin + length, begin, kUnknown, unknown_score_ + before);
      begin += length;
    }
    put(word, base, best, out);
  }

  // Follows the best way back from the end, turns it round.
  void put(std::string_view word, std::int64_t base, const std::vector<Node>& best, std::vector<Token>& out) const {
    const std::size_t first = out.size();
    for (std::size_t end = word.size(); end > 0;) {
      const Node& node = best[end];
      std::size_t begin = node.begin;
      if (node.piece >= 0) {
        out.push_back({node.piece < pieces_ ? node.piece : alias_ids_[static_cast<std::size_t>(node.piece - pieces_)],
                       base + static_cast<std::int64_t>(begin), base + static_cast<std::int64_t>(end)});
      } else {
        // Unknown characters side by side are one unknown token.
        while (begin > 0 && best[begin].piece == kUnknown) begin = best[begin].begin;
        put_unknown(word.substr(begin, end - begin), base + static_cast<std::int64_t>(begin), out);
      }
      end = begin;
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  }

  // Backwards.
  void put_unknown(std::string_view text, std::int64_t at, std::vector<Token>& out) const {
    if (stages_.byte_fallback && bytes_.cover(text)) {
      for (std::size_t i = text.size(); i-- > 0;) {
        const std::int64_t begin = at + static_cast<std::int64_t>(i);
        out.push_back({bytes_.id(text[i]), begin, begin + 1});
      }
    } else if (stages_.unknown) {
      out.push_back({*stages_.unknown, at, at + static_cast<std::int64_t>(text.size())});
    } else {
      throw NoToken{at};
    }
  }

  const Stages& stages_;
  std::int32_t pieces_;
  std::vector<Score> scores_;            // of the pieces, then of the aliases
  std::vector<std::int32_t> alias_ids_;  // what each alias is read as
  Score unknown_score_ = 0;
  BytePieces bytes_;
  std::optional<PieceTrie> trie_;
};

}  // namespace

std::unique_ptr<Encoder> make_unigram_encoder(const TokenizerSpec& spec, const Stages& stages) {
  if (!spec.exact_scores.empty()) return std::make_unique<UnigramEncoder<double>>(spec, stages, spec.exact_scores);
  return std::make_unique<UnigramEncoder<float>>(spec, stages, spec.scores);
}

}  // namespace regard
