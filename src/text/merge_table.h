#pragma once
// Which pieces merge into which, and in what order.

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/merge-inl.h"
#include "text/tokenizer_spec.h"

namespace regard {

// Ids of pieces by how they are written. Of pieces written the same the later one counts, but what is read from a text
// as written is never a word's part.
std::unordered_map<std::string_view, std::int32_t> ids_of_pieces(const TokenizerSpec& spec);

// (left, right) -> rank and merged piece: open addressing, at most half full.
class MergeTable {
 public:
  // By `spec.ranked` or else `spec.merges`; the first of equals counts, as a lower rank does. Error{bad_input} names a
  // merge of what is not in the vocabulary.
  MergeTable(const TokenizerSpec& spec, const std::unordered_map<std::string_view, std::int32_t>& ids);

  std::optional<Merge> find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[place(key(left, right))];
    if (slot.key == kEmpty) return std::nullopt;
    return slot.merge;
  }

  // `visit(merged id)` for each merge.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Slot& slot : slots_)
      if (slot.key != kEmpty) visit(slot.merge.id);
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // no id is -1 in a merge
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge{0, 0};
  };

  void insert(std::int32_t left, std::int32_t right, Merge merge);
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

}  // namespace regard
