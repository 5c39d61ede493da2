#pragma once
// UTF-8, read so that no byte is ever lost: a byte that is not part of a valid sequence is a character of its own.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace regard {

// Larger than any code point: stands for one byte that is not part of valid UTF-8.
inline constexpr std::uint32_t kInvalidByte = 0xFFFFFFFFu;

struct Character {
  std::uint32_t code;    // a code point, or kInvalidByte
  std::uint32_t length;  // bytes, 1 to 4; 1 for an invalid byte
};

// The character at `at` < text.size(). Valid means shortest form, no surrogates, at most U+10FFFF (Unicode, table 3-7).
inline Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint32_t lead = byte(0);
  const std::size_t left = text.size() - at;
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2) return {kInvalidByte, 1};
  if (lead < 0xE0) {
    if (left < 2 || !continues(1)) return {kInvalidByte, 1};
    return {(lead & 0x1F) << 6 | (byte(1) & 0x3Fu), 2};
  }
  if (lead < 0xF0) {
    if (left < 3 || !continues(1) || !continues(2)) return {kInvalidByte, 1};
    const std::uint32_t code = (lead & 0x0F) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    if (code < 0x800 || (code >= 0xD800 && code < 0xE000)) return {kInvalidByte, 1};
    return {code, 3};
  }
  if (lead < 0xF5) {
    if (left < 4 || !continues(1) || !continues(2) || !continues(3)) return {kInvalidByte, 1};
    const std::uint32_t code =
        (lead & 0x07) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
    if (code < 0x10000 || code > 0x10FFFF) return {kInvalidByte, 1};
    return {code, 4};
  }
  return {kInvalidByte, 1};
}

// Appends the UTF-8 form of `code`, a code point.
void append_utf8(std::string& out, std::uint32_t code);

// Where the first byte stands that is not part of valid UTF-8, for faces that want to say so.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace regard
