#pragma once
// Ids of pieces by how they are written.

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regard {

// A quick hash of a short text; not for what somebody may choose to collide on a server.
inline std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  const auto mix = [&](const char* bytes, std::size_t n) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bytes, n);
    hash = (hash ^ eight) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  };
  for (; text.size() >= 8; text.remove_prefix(8)) mix(text.data(), 8);
  mix(text.data(), text.size());
  return hash ^ hash >> 32;
}

// Open addressing; it keeps no text, so each call is given the same pieces, which may grow.
class PieceIndex {
 public:
  explicit PieceIndex(std::size_t expected) {
    std::size_t size = 16;
    while (size < 2 * expected) size *= 2;
    slots_.resize(size);
  }

  // The piece `id`, which is not empty. Of pieces written the same the last one set counts.
  void set(const std::vector<std::string>& pieces, std::int32_t id) {
    if (2 * (count_ + 1) > slots_.size()) grow(pieces);
    const std::string_view text = pieces[static_cast<std::size_t>(id)];
    Slot& slot = slots_[place(pieces, text)];
    if (slot.id < 0) ++count_;
    slot = {static_cast<std::uint32_t>(hash_of(text) >> 32), id};
  }

  std::optional<std::int32_t> find(const std::vector<std::string>& pieces, std::string_view text) const {
    const std::int32_t id = slots_[place(pieces, text)].id;
    if (id < 0) return std::nullopt;
    return id;
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;  // of the hash, so that few texts need be looked at
    std::int32_t id = -1;   // -1: free
  };

  std::size_t place(const std::vector<std::string>& pieces, std::string_view text) const {
    const std::uint64_t hash = hash_of(text);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].id >= 0 && (slots_[at].tag != tag || pieces[static_cast<std::size_t>(slots_[at].id)] != text))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void grow(const std::vector<std::string>& pieces) {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old)
      if (slot.id >= 0) slots_[place(pieces, pieces[static_cast<std::size_t>(slot.id)])] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace regard
