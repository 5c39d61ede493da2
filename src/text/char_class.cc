#include "text/char_class.h"

#include <utf8proc.h>

#include <memory>

namespace regard {
namespace {

CharClass by_category(std::uint32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharClass::space;
    default:
      return CharClass::other;
  }
}

}  // namespace

const std::array<CharClass, 0x10000>& first_plane_classes() {
  static const auto table = [] {
    auto made = std::make_unique<std::array<CharClass, 0x10000>>();
    for (std::uint32_t code = 0; code < 0x10000; ++code) (*made)[code] = by_category(code);
    // White_Space is the three separator categories and these controls (Unicode, PropList.txt).
    for (const std::uint32_t control : {0x09, 0x0B, 0x0C, 0x85}) (*made)[control] = CharClass::space;
    for (const std::uint32_t control : {0x0A, 0x0D}) (*made)[control] = CharClass::newline;
    return made;
  }();
  return *table;
}

CharClass class_beyond_first_plane(std::uint32_t code) {
  return code == kInvalidByte ? CharClass::other : by_category(code);
}

}  // namespace regard
