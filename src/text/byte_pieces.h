#pragma once
// Pieces that stand for one byte: "<0x0A>".

#include <array>
#include <cstdint>
#include <string_view>

namespace regard {

// The byte that a piece is written for, or -1.
int named_byte(std::string_view piece);

// Ids of the 256 byte pieces; -1 where there is none.
class BytePieces {
 public:
  BytePieces() { ids_.fill(-1); }
  void set(int byte, std::int32_t id) { ids_[static_cast<std::size_t>(byte)] = id; }
  std::int32_t id(char byte) const { return ids_[static_cast<std::uint8_t>(byte)]; }
  // Whether every byte of a text has one.
  bool cover(std::string_view text) const {
    for (const char c : text)
      if (id(c) < 0) return false;
    return true;
  }

 private:
  std::array<std::int32_t, 256> ids_;
};

}  // namespace regard
