#include "text/display.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>

#include "text/utf8.h"

namespace regard {
namespace {

constexpr std::uint32_t kJoiner = 0x200D, kNonJoiner = 0x200C, kEmojiForm = 0xFE0F;

// Between two characters a joiner shapes them (an emoji family, Persian, Indic scripts); alone it is invisible.
bool joins(std::string_view text, std::size_t at, const Character& c) {
  return (c.code == kJoiner || c.code == kNonJoiner) && at > 0 && at + c.length < text.size();
}

bool is_tag(std::uint32_t code) { return code >= 0xE0020 && code <= 0xE007F; }  // of a flag such as Scotland's

std::string escaped(std::uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      if (code < 0x80) return fmt::format("\\x{:02X}", code);
      return code < 0x10000 ? fmt::format("\\u{:04X}", code) : fmt::format("\\U{:08X}", code);
  }
}

}  // namespace

std::string display(std::string_view bytes) {
  std::string shown;
  for (std::size_t at = 0; at < bytes.size();) {
    const Character c = character_at(bytes, at);
    if (c.code == kInvalidByte) {
      shown += fmt::format("\\x{:02X}", static_cast<std::uint8_t>(bytes[at]));
    } else {
      switch (utf8proc_category(static_cast<utf8proc_int32_t>(c.code))) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
          shown += escaped(c.code);
          break;
        case UTF8PROC_CATEGORY_CF:
          if (!joins(bytes, at, c) && !(is_tag(c.code) && at > 0)) {
            shown += escaped(c.code);
            break;
          }
          [[fallthrough]];
        default:
          shown += bytes.substr(at, c.length);
      }
    }
    at += c.length;
  }
  return shown;
}

int columns(std::string_view text) {
  int total = 0, cluster = 0, flags = 0;  // a cluster is what a reader takes for one character (UAX #29)
  std::uint32_t before = 0;
  utf8proc_int32_t state = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    at += c.length;
    const std::uint32_t code = c.code == kInvalidByte ? 0xFFFD : c.code;
    const bool breaks = before == 0 || utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                                                        static_cast<utf8proc_int32_t>(code), &state);
    if (breaks) {
      total += cluster;
      cluster = flags = 0;
    }
    const bool flag = code >= 0x1F1E6 && code <= 0x1F1FF;  // half of one
    flags += flag ? 1 : 0;
    const int width = code == kEmojiForm || flags == 2 ? 2 : utf8proc_charwidth(static_cast<utf8proc_int32_t>(code));
    cluster = std::max(cluster, width);
    before = code;
  }
  return total + cluster;
}

}  // namespace regard
