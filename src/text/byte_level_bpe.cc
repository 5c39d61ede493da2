// Byte-level BPE (GPT-2 and its heirs): the letters are the 256 bytes, pairs of pieces are merged by rank.

#include <fmt/core.h>

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensor/error.h"
#include "text/byte_alphabet.h"
#include "text/encoder.h"
#include "text/merge-inl.h"
#include "text/normal_form.h"
#include "text/pretokenizer.h"

namespace regard {
namespace {

// (left, right) -> rank and merged piece: open addressing, at most half full.
class MergeTable {
 public:
  explicit MergeTable(std::size_t merges) {
    std::size_t size = 16;
    while (size < 2 * merges) size *= 2;
    slots_.resize(size);
    mask_ = size - 1;
  }

  // The first of equals counts, as a lower rank does.
  void insert(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[place(key(left, right))];
    if (slot.key == kEmpty) slot = {key(left, right), merge};
  }

  std::optional<Merge> find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[place(key(left, right))];
    if (slot.key == kEmpty) return std::nullopt;
    return slot.merge;
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // no id is -1 here
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge{0, 0};
  };

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t place(std::uint64_t key) const {
    std::uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 32;
    std::size_t at = mixed & mask_;
    while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask_;
    return at;
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
};

class ByteLevelEncoder final : public Encoder {
 public:
  explicit ByteLevelEncoder(const TokenizerSpec& spec)
      : spec_(spec), rules_(pretokenizer_named(spec.pre)), merges_(spec.merges.size()) {
    // Of pieces written the same the later one counts, but what is read from a text as written is never a word's part.
    std::unordered_map<std::string_view, std::int32_t> ids;
    ids.reserve(spec.pieces.size());
    for (const bool special : {true, false})
      for (std::size_t id = 0; id < spec.pieces.size(); ++id)
        if (is_special_type(type_of(spec, id)) == special && !spec.pieces[id].empty())
          ids[spec.pieces[id]] = static_cast<std::int32_t>(id);
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids.find(byte_letter(static_cast<std::uint8_t>(byte)));
      byte_ids_[static_cast<std::size_t>(byte)] = found == ids.end() ? -1 : found->second;
    }
    for (std::size_t rank = 0; rank < spec.merges.size(); ++rank) add_merge(rank, ids);
    if (takes_whole_words(rules_))
      for (std::size_t id = 0; id < spec.pieces.size(); ++id)
        if (!is_special_type(type_of(spec, id)) && !spec.pieces[id].empty())
          words_[bytes(static_cast<std::int32_t>(id))] = static_cast<std::int32_t>(id);
  }

  void encode(std::string_view text, std::int64_t base, bool, std::vector<Token>& out) const override {
    std::optional<Rewritten> rewritten;
    if (normalizes(rules_)) rewritten = normal_form_c(text);
    const std::string_view source = rewritten ? rewritten->text() : text;
    const std::size_t first = out.size();
    try {
      encode_words(source, out);
    } catch (const MissingByte& missing) {
      const std::int64_t at = rewritten ? rewritten->source(missing.at, missing.at + 1).begin : missing.at;
      throw Error(ErrorCode::bad_input,
                  fmt::format("byte 0x{:02X} at byte {} of the text has no token in this vocabulary",
                              static_cast<std::uint8_t>(source[static_cast<std::size_t>(missing.at)]), base + at),
                  "take it out of the text; this model has never seen it");
    }
    for (std::size_t i = first; i < out.size(); ++i) {
      if (rewritten) {
        const Rewritten::Range range = rewritten->source(out[i].begin, out[i].end);
        out[i].begin = range.begin;
        out[i].end = range.end;
      }
      out[i].begin += base;
      out[i].end += base;
    }
  }

  std::string bytes(std::int32_t id) const override {
    const std::string& piece = spec_.pieces[static_cast<std::size_t>(id)];
    if (type_of(spec_, static_cast<std::size_t>(id)) == TokenType::user_defined) return piece;
    return bytes_of_letters(piece).value_or(piece);
  }

 private:
  struct MissingByte {
    std::int64_t at;
  };

  static bool is_special_type(TokenType type) { return type == TokenType::control || type == TokenType::unknown; }

  void add_merge(std::size_t rank, const std::unordered_map<std::string_view, std::int32_t>& ids) {
    const std::string_view merge = spec_.merges[rank];
    const auto fail = [&](std::string_view why) {
      throw Error(ErrorCode::bad_input, fmt::format("merge {} '{}' of the tokenizer: {}", rank, merge, why));
    };
    const std::size_t gap = merge.find(' ', 1);  // a piece is not empty, so the first byte is no separator
    if (gap == std::string_view::npos || gap + 1 == merge.size()) fail("not two pieces with a space between them");
    const std::string_view left = merge.substr(0, gap), right = merge.substr(gap + 1);
    const auto id = [&](std::string_view piece) {
      const auto found = ids.find(piece);
      if (found == ids.end()) fail(fmt::format("'{}' is not in the vocabulary", piece));
      return found->second;
    };
    const std::int32_t merged = id(std::string(left).append(right));
    merges_.insert(id(left), id(right), {static_cast<std::uint32_t>(rank), merged});
  }

  void encode_words(std::string_view text, std::vector<Token>& out) const {
    Merger merger;
    WordScanner scanner(rules_, text);
    std::int64_t begin = 0;
    for (std::string_view word = scanner.next(); !word.empty(); word = scanner.next()) {
      if (!words_.empty()) {
        if (const auto whole = words_.find(word); whole != words_.end()) {
          out.push_back({whole->second, begin, begin + static_cast<std::int64_t>(word.size())});
          begin += static_cast<std::int64_t>(word.size());
          continue;
        }
      }
      merger.clear();
      for (std::size_t i = 0; i < word.size(); ++i) {
        const std::int32_t id = byte_ids_[static_cast<std::uint8_t>(word[i])];
        if (id < 0) throw MissingByte{begin + static_cast<std::int64_t>(i)};
        merger.append(static_cast<std::uint32_t>(i), 1, id);
      }
      merger.merge([&](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
      merger.each([&](const Symbol& symbol) {
        out.push_back({symbol.id, begin + symbol.begin, begin + symbol.begin + symbol.length});
      });
      begin += static_cast<std::int64_t>(word.size());
    }
  }

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  const TokenizerSpec& spec_;
  PreTokenizer rules_;
  std::array<std::int32_t, 256> byte_ids_{};
  MergeTable merges_;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> words_;  // only where whole words are taken
};

}  // namespace

std::unique_ptr<Encoder> make_byte_level_encoder(const TokenizerSpec& spec) {
  return std::make_unique<ByteLevelEncoder>(spec);
}

}  // namespace regard
