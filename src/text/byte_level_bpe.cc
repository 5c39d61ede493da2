// Byte-level BPE (GPT-2 and its heirs): the letters are the 256 bytes, pairs of pieces are merged by rank.

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/encoder.h"
#include "text/merge-inl.h"
#include "text/merge_table.h"
#include "text/word_memory.h"

namespace regard {
namespace {

class ByteLevelEncoder final : public Encoder {
 public:
  ByteLevelEncoder(const TokenizerSpec& spec, const Stages& stages)
      : ByteLevelEncoder(spec, stages, ids_of_pieces(spec)) {}

  void encode(std::string_view text, const std::vector<Word>& words, std::vector<Token>& out) const override {
    Merger merger;
    WordMemory memory(text, words.size());
    for (const Word& word : words)
      memory.append(word, out,
                    [&] { encode_word(text.substr(word.begin, word.end - word.begin), word.begin, merger, out); });
  }

 private:
  ByteLevelEncoder(const TokenizerSpec& spec, const Stages& stages, const PieceIndex& ids)
      : merges_(spec, ids), unknown_(stages.unknown) {
    for (int byte = 0; byte < 256; ++byte) {
      byte_ids_[static_cast<std::size_t>(byte)] =
          ids.find(spec.pieces, byte_letter(static_cast<std::uint8_t>(byte))).value_or(-1);
    }
    pairs_.resize(std::size_t{256} * 256);
    for (std::size_t pair = 0; pair < pairs_.size(); ++pair)
      pairs_[pair] = merges_.find(byte_or_unknown(pair / 256), byte_or_unknown(pair % 256)).value_or(Merge{0, -1});
    if (!stages.whole_words) return;
    for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
      const TokenType type = type_of(spec, id);
      const std::string& piece = spec.pieces[id];
      if (is_special_type(type) || piece.empty()) continue;
      words_[type == TokenType::user_defined ? piece : bytes_of_letters(piece).value_or(piece)] =
          static_cast<std::int32_t>(id);
    }
  }

  void encode_word(std::string_view word, std::int64_t begin, Merger& merger, std::vector<Token>& out) const {
    if (!words_.empty())
      if (const auto whole = words_.find(word); whole != words_.end()) {
        out.push_back({whole->second, begin, begin + static_cast<std::int64_t>(word.size())});
        return;
      }
    merger.clear();
    for (std::size_t i = 0; i < word.size(); ++i) {
      const std::int32_t id = byte_or_unknown(static_cast<std::uint8_t>(word[i]));
      if (id < 0) throw NoToken{begin + static_cast<std::int64_t>(i)};
      merger.append(static_cast<std::uint32_t>(i), 1, id);
    }
    merger.merge([&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
      if (left.length != 1 || right.length != 1) return merges_.find(left.id, right.id);
      const Merge& pair = pairs_[std::size_t{256} * static_cast<std::uint8_t>(word[left.begin]) +
                                 static_cast<std::uint8_t>(word[right.begin])];
      if (pair.id < 0) return std::nullopt;
      return pair;
    });
    merger.each([&](const Symbol& symbol) {
      out.push_back({symbol.id, begin + symbol.begin, begin + symbol.begin + symbol.length});
    });
  }

  std::int32_t byte_or_unknown(std::size_t byte) const {
    return byte_ids_[byte] >= 0 ? byte_ids_[byte] : unknown_.value_or(-1);
  }

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::array<std::int32_t, 256> byte_ids_{};
  MergeTable merges_;
  std::vector<Merge> pairs_;             // [256 * 256] of two bytes; id -1: they do not merge
  std::optional<std::int32_t> unknown_;  // instead of a byte that has no piece
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> words_;  // only where whole words are taken
};

}  // namespace

std::unique_ptr<Encoder> make_byte_level_encoder(const TokenizerSpec& spec, const Stages& stages) {
  return std::make_unique<ByteLevelEncoder>(spec, stages);
}

}  // namespace regard
