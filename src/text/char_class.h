#pragma once
// What a pre-tokenizer wants to know of a character. The table is utf8proc's (Unicode 15.0 in utf8proc 2.8).

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace regard {

enum class CharClass : std::uint8_t {
  other,    // punctuation, symbols, marks, controls, unassigned; a byte that is not valid UTF-8
  letter,   // \p{L}
  number,   // \p{N}
  space,    // \s: the property White_Space, without the two below
  newline,  // \r \n
};

// Classes of the first plane, one byte each, made once. (The other planes are rare: they are asked one by one.)
const std::array<CharClass, 0x10000>& first_plane_classes();

// Any code point, or kInvalidByte.
CharClass class_beyond_first_plane(std::uint32_t code);

}  // namespace regard
