#pragma once
// Merging neighbours, the best pair first: the one algorithm under both kinds of byte pair encoding.
//
// A heap of candidate pairs and a linked list of symbols: n log n for a word of n symbols, so a megabyte without a
// space is no trap. (Sennrich et al. 2016, "Neural machine translation of rare words with subword units", section 3.2.)

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace regard {

struct Symbol {
  std::uint32_t begin = 0, length = 0;  // bytes of the word; length 0: merged into the symbol before
  std::int32_t id = -1;                 // of its piece; -1 if it is none
  std::int32_t previous = -1, next = -1;
};

struct Merge {
  std::uint32_t order;  // the lowest is merged first, among equals the leftmost
  std::int32_t id;      // of the merged piece
};

// Room that is used again from word to word.
class Merger {
 public:
  void clear() { symbols_.clear(); }
  void append(std::uint32_t begin, std::uint32_t length, std::int32_t id) {
    const auto n = static_cast<std::int32_t>(symbols_.size());
    if (n > 0) symbols_.back().next = n;
    symbols_.push_back({begin, length, id, n - 1, -1});
  }

  // `lookup(const Symbol& left, const Symbol& right) -> std::optional<Merge>` says whether neighbours merge.
  template <class Lookup>
  void merge(const Lookup& lookup) {
    heap_.clear();
    for (std::size_t i = 1; i < symbols_.size(); ++i) consider(static_cast<std::int32_t>(i - 1), lookup);
    std::make_heap(heap_.begin(), heap_.end());
    while (!heap_.empty()) {
      const Candidate best = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
      Symbol& left = symbols_[best.left()];
      // The pair is still there if both parts are and neither has grown: growing changes the sum of their lengths.
      if (left.length == 0 || left.next < 0) continue;
      Symbol& right = symbols_[static_cast<std::size_t>(left.next)];
      if (left.length + right.length != best.length) continue;
      left.length = best.length;
      left.id = best.id;
      right.length = 0;
      left.next = right.next;
      const auto at = static_cast<std::int32_t>(best.left());
      if (left.next >= 0) symbols_[static_cast<std::size_t>(left.next)].previous = at;
      if (left.previous >= 0 && consider(left.previous, lookup)) std::push_heap(heap_.begin(), heap_.end());
      if (consider(at, lookup)) std::push_heap(heap_.begin(), heap_.end());
    }
  }

  // What is left, in order: `visit(const Symbol&)`.
  template <class Visit>
  void each(const Visit& visit) const {
    if (symbols_.empty()) return;
    for (std::int32_t i = 0; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next)
      visit(symbols_[static_cast<std::size_t>(i)]);
  }

 private:
  struct Candidate {
    std::uint64_t key;  // order, then the left symbol's index: one comparison
    std::uint32_t length;
    std::int32_t id;
    std::uint32_t left() const { return static_cast<std::uint32_t>(key); }
    bool operator<(const Candidate& other) const { return key > other.key; }  // the heap's top is the lowest
  };

  template <class Lookup>
  bool consider(std::int32_t at, const Lookup& lookup) {
    const Symbol& left = symbols_[static_cast<std::size_t>(at)];
    if (left.next < 0) return false;
    const Symbol& right = symbols_[static_cast<std::size_t>(left.next)];
    const std::optional<Merge> merge = lookup(left, right);
    if (!merge) return false;
    heap_.push_back(
        {std::uint64_t{merge->order} << 32 | static_cast<std::uint32_t>(at), left.length + right.length, merge->id});
    return true;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace regard
