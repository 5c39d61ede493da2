#pragma once
// What the scanners of pretokenizer.cc and their kin look at.

#include <array>
#include <cstdint>
#include <string_view>

#include "text/char_class.h"
#include "text/utf8.h"

namespace regard {

// Looks at the characters of a part of a text, which nothing outside of it influences.
class Part {
 public:
  explicit Part(std::string_view text) : text_(text), classes_(first_plane_classes()) {}

  struct Seen {
    CharClass kind;
    std::uint32_t length;  // 0 at the end
  };

  Seen at(std::size_t i) const {
    if (i >= text_.size()) return {CharClass::other, 0};
    const Character c = character_at(text_, i);
    return {c.code < classes_.size() ? classes_[c.code] : class_beyond_first_plane(c.code), c.length};
  }

  bool is(std::size_t i, CharClass kind) const {
    const Seen seen = at(i);
    return seen.length != 0 && seen.kind == kind;
  }

  std::size_t run_end(std::size_t i, CharClass kind) const {
    for (;;) {
      const Seen seen = at(i);
      if (seen.length == 0 || seen.kind != kind) return i;
      i += seen.length;
    }
  }

  // 's 't 're 've 'm 'll 'd at `i`: the end of it, or `i`. Without regard to case, s is also U+017F, the long s.
  std::size_t contraction_end(std::size_t i, bool any_case) const {
    if (i >= text_.size() || text_[i] != '\'') return i;
    const auto letter = [&](std::size_t k) -> char {
      if (k >= text_.size()) return 0;
      const char c = text_[k];
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    const char first = letter(i + 1), second = letter(i + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return i + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return i + 3;
    if (first == 'l' && second == 'l') return i + 3;
    if (any_case && text_.substr(i + 1, 2) == "\u017F") return i + 3;
    return i;
  }

  // \s+(?!\S)|\s+ at `i`, which is white space: all of it up to the end of the text, else all but its last character,
  // which goes with what follows, else that one character.
  std::size_t space_end(std::size_t i) const {
    std::size_t end = i, last = i;
    for (Seen seen = at(end); seen.length != 0 && is_space(seen.kind); seen = at(end)) {
      last = end;
      end += seen.length;
    }
    return end == text_.size() || last == i ? end : last;
  }

  // \s*[\r\n]+ at `i`: behind the last line end of the white space there, or `i`.
  std::size_t lines_end(std::size_t i) const {
    std::size_t end = i;
    for (Seen seen = at(i); seen.length != 0 && is_space(seen.kind); seen = at(i)) {
      i += seen.length;
      if (seen.kind == CharClass::newline) end = i;
    }
    return end;
  }

  char byte(std::size_t i) const { return text_[i]; }
  std::uint32_t code(std::size_t i) const { return i < text_.size() ? character_at(text_, i).code : kInvalidByte; }

 private:
  static bool is_space(CharClass kind) { return kind == CharClass::space || kind == CharClass::newline; }

  std::string_view text_;
  const std::array<CharClass, 0x10000>& classes_;
};

}  // namespace regard
