#include "text/scan_cased.h"

#include <utf8proc.h>

#include <memory>

namespace regard {
namespace {

// Letters without a case and marks count as both.
constexpr std::uint8_t kUpper = 1, kLower = 2;

std::uint8_t case_by_category(std::uint32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kUpper;
    case UTF8PROC_CATEGORY_LL:
      return kLower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kUpper | kLower;
    default:
      return 0;
  }
}

using Plane = std::array<std::uint8_t, 0x10000>;

const Plane& first_plane_cases() {
  static const auto table = [] {
    auto made = std::make_unique<Plane>();
    for (std::uint32_t code = 0; code < made->size(); ++code) (*made)[code] = case_by_category(code);
    return made;
  }();
  return *table;
}

std::uint8_t case_at(const Part& part, std::size_t i) {
  const std::uint32_t code = part.code(i);
  if (code == kInvalidByte) return 0;
  return code < 0x10000 ? first_plane_cases()[code] : case_by_category(code);
}

// Where a run of characters of a case ends.
std::size_t case_end(const Part& part, std::size_t i, std::uint8_t wanted) {
  while (part.at(i).length != 0 && (case_at(part, i) & wanted) != 0) i += part.at(i).length;
  return i;
}

// [upper]*[lower]+ at `i`, or `i`.
std::size_t lower_word_end(const Part& part, std::size_t i) {
  const std::size_t upper = case_end(part, i, kUpper);
  if (const std::size_t end = case_end(part, upper, kLower); end != upper) return end;
  // The upper case gives back as little as it can: all from its last character that is of both cases.
  std::size_t end = i;
  for (std::size_t at = i; at != upper;) {
    const std::size_t next = at + part.at(at).length;
    if ((case_at(part, at) & kLower) != 0) end = next;
    at = next;
  }
  return end;
}

// [upper]+[lower]* at `i` where the other does not fit, or `i`.
std::size_t upper_word_end(const Part& part, std::size_t i) { return case_end(part, i, kUpper); }

// contractions: they belong to the word before them.
std::size_t cased_word_end(const Part& part, std::size_t i, int digits, bool contractions) {
  const Part::Seen first = part.at(i);
  // One sign that is no letter, digit or line end may stand before a word. A mark may too, or be its beginning.
  const bool prefixes =
      first.kind != CharClass::letter && first.kind != CharClass::number && first.kind != CharClass::newline;
  for (const auto word_end : {lower_word_end, upper_word_end})
    for (const std::size_t from : {prefixes ? i + first.length : i, i})
      if (const std::size_t end = word_end(part, from); end != from)
        return contractions ? part.contraction_end(end, true) : end;
  if (first.kind == CharClass::number) {
    for (int n = 0; n < digits && part.is(i, CharClass::number); ++n) i += part.at(i).length;
    return i;
  }
  const std::size_t word = part.byte(i) == ' ' ? i + 1 : i;
  if (part.is(word, CharClass::other)) {
    std::size_t end = part.run_end(word, CharClass::other);
    while (part.is(end, CharClass::newline) || (part.at(end).length != 0 && part.byte(end) == '/')) ++end;
    return end;
  }
  if (const std::size_t end = part.lines_end(i); end != i) return end;
  return part.space_end(i);
}

}  // namespace

std::size_t o200k_word_end(const Part& part, std::size_t i) { return cased_word_end(part, i, 3, true); }
std::size_t tekken_word_end(const Part& part, std::size_t i) { return cased_word_end(part, i, 1, false); }

}  // namespace regard
