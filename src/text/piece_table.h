#pragma once
// Pieces found by their text, where the text is a stretch of a longer one.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace regard {

// Hashes of all stretches of a text: after one pass, any stretch's hash costs one product. Joining neighbours then
// never reads their bytes again, however long they have grown. (Karp and Rabin 1987; the modulus is 2^64.)
class StretchHashes {
 public:
  // `longest`: the longest stretch that will be asked for.
  explicit StretchHashes(std::size_t longest);
  void read(std::string_view text);
  std::uint64_t of(std::size_t begin, std::size_t length) const {
    return prefix_[begin + length] - prefix_[begin] * power_[length];
  }

 private:
  std::vector<std::uint64_t> power_, prefix_;
};

class PieceTable {
 public:
  // The later of two with equal texts counts. Texts must outlive the table.
  explicit PieceTable(const std::vector<std::string_view>& texts, const std::vector<std::int32_t>& ids);

  std::size_t longest() const { return longest_; }
  // `hash` is the StretchHashes hash of `text`.
  std::optional<std::int32_t> find(std::uint64_t hash, std::string_view text) const;

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::int32_t id = -1;  // -1: free
    std::uint32_t text = 0;
  };
  std::size_t place(std::uint64_t hash, std::string_view text) const;

  std::vector<std::string_view> texts_;
  std::vector<Slot> slots_;
  std::size_t longest_ = 0;
};

}  // namespace regard
