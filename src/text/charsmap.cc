#include "text/charsmap.h"

#include <utf8proc.h>

#include <cstring>

#include "tensor/error.h"
#include "text/utf8.h"

namespace regard {
namespace {

// An honest map's longest entry has a few dozen bytes. A trie that leads round in circles must not make every look-up
// as long as the text.
constexpr std::size_t kLongestEntry = 256;

// The fields of a unit (Darts-clone, DoubleArrayUnit).
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t value(std::uint32_t unit) { return unit & 0x7FFFFFFFu; }
std::uint32_t label(std::uint32_t unit) { return unit & (0x80000000u | 0xFFu); }
std::uint32_t offset(std::uint32_t unit) { return unit >> 10 << ((unit & 0x200u) >> 6); }

// Where the grapheme that begins at `at` ends (UAX #29).
std::size_t grapheme_end(std::string_view text, std::size_t at) {
  utf8proc_int32_t state = 0;
  Character before = character_at(text, at);
  at += before.length;
  while (at < text.size() && before.code != kInvalidByte) {
    const Character c = character_at(text, at);
    if (c.code == kInvalidByte) break;
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.code),
                                         static_cast<utf8proc_int32_t>(c.code), &state))
      break;
    at += c.length;
    before = c;
  }
  return at;
}

}  // namespace

Charsmap::Charsmap(std::string_view blob) {
  std::uint32_t bytes = 0;
  if (blob.size() >= 4)
    for (std::size_t i = 0; i < 4; ++i) bytes |= std::uint32_t{static_cast<std::uint8_t>(blob[i])} << (8 * i);
  if (blob.size() < 4 || bytes > blob.size() - 4 || bytes % 4 != 0 || bytes == 0)
    throw Error(ErrorCode::bad_input, "the tokenizer's precompiled charsmap is cut or damaged");
  units_.resize(bytes / 4);
  for (std::size_t i = 0; i < units_.size(); ++i)
    for (std::size_t b = 0; b < 4; ++b)
      units_[i] |= std::uint32_t{static_cast<std::uint8_t>(blob[4 + 4 * i + b])} << (8 * b);
  texts_ = blob.substr(4 + bytes);
}

std::optional<Charsmap::Found> Charsmap::find(std::string_view text, bool longest) const {
  std::optional<Found> found;
  std::size_t node = offset(units_[0]);
  for (std::size_t i = 0; i < text.size() && i < kLongestEntry; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    const std::size_t begin = value(units_[node]);
    if (begin >= texts_.size()) break;
    const std::size_t end = texts_.find('\0', begin);
    found = Found{i + 1, std::string_view(texts_).substr(begin, end == std::string::npos ? end : end - begin)};
    if (!longest) break;
  }
  return found;
}

std::optional<Rewritten> Charsmap::apply(std::string_view text) const {
  Changes changes(text);
  for (std::size_t at = 0; at < text.size();) {
    if (const auto found = find(text.substr(at), true)) {
      if (found->value != text.substr(at, found->length)) changes.replace(at, at + found->length, found->value);
      at += found->length;
    } else {
      at += character_at(text, at).length;
    }
  }
  return changes.finish();
}

std::optional<Rewritten> Charsmap::apply_by_grapheme(std::string_view text) const {
  Changes changes(text);
  const auto look_up = [&](std::size_t begin, std::size_t end) {
    const auto found = find(text.substr(begin, end - begin), false);
    if (found && found->value != text.substr(begin, end - begin)) changes.replace(begin, end, found->value);
    return found.has_value();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = grapheme_end(text, at);
    if (end - at >= 6 || !look_up(at, end))
      for (std::size_t i = at; i < end;) {
        const std::size_t next = i + character_at(text, i).length;
        look_up(i, next);
        i = next;
      }
    at = end;
  }
  return changes.finish();
}

}  // namespace regard
