#include "text/byte_alphabet.h"

#include "text/utf8.h"

namespace regard {
namespace {

struct Alphabet {
  std::array<std::string, 256> letter;
  std::array<int, 0x144> byte;  // of a letter; -1: not one

  Alphabet() {
    byte.fill(-1);
    std::uint32_t next = 0x100;
    for (std::uint32_t b = 0; b < 256; ++b) {
      const bool prints = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const std::uint32_t code = prints ? b : next++;
      append_utf8(letter[b], code);
      byte[code] = static_cast<int>(b);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

const std::string& byte_letter(std::uint8_t byte) { return alphabet().letter[byte]; }

std::optional<std::string> bytes_of_letters(std::string_view piece) {
  const Alphabet& known = alphabet();
  std::string bytes;
  for (std::size_t at = 0; at < piece.size();) {
    const Character c = character_at(piece, at);
    if (c.code >= known.byte.size() || known.byte[c.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(known.byte[c.code]));
    at += c.length;
  }
  return bytes;
}

}  // namespace regard
