#include "text/utf8.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

namespace regard {
namespace {

TEST(Utf8, EveryCodePointIsReadAsItIsWritten) {
  for (std::uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    const Character c = character_at(text, 0);
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(c.length, text.size());
    ASSERT_FALSE(first_invalid_utf8(text));
    // Cut short it is no character, whatever follows.
    for (std::size_t n = 1; n < text.size(); ++n)
      ASSERT_EQ(character_at(text.substr(0, n) + "a", 0).code, kInvalidByte);
  }
}

// Every sequence of two bytes, and those of three and four whose bytes stand at the edges of what is allowed.
TEST(Utf8, AgreesWithUtf8procOnWhatIsValid) {
  const unsigned char edges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xF0, 0xFF};
  const auto agree = [](const std::string& text) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                static_cast<utf8proc_ssize_t>(text.size()), &code);
    const Character c = character_at(text, 0);
    if (n < 0) return c.code == kInvalidByte && c.length == 1;
    return c.code == static_cast<std::uint32_t>(code) && c.length == static_cast<std::uint32_t>(n);
  };
  for (int a = 0; a < 256; ++a) {
    ASSERT_TRUE(agree(std::string(1, static_cast<char>(a))));
    for (int b = 0; b < 256; ++b) {
      const std::string two{static_cast<char>(a), static_cast<char>(b)};
      ASSERT_TRUE(agree(two)) << a << ' ' << b;
      for (const unsigned char c : edges) {
        ASSERT_TRUE(agree(two + static_cast<char>(c))) << a << ' ' << b << ' ' << int{c};
        for (const unsigned char d : edges)
          ASSERT_TRUE(agree(two + static_cast<char>(c) + static_cast<char>(d))) << a << ' ' << b << ' ' << int{c};
      }
    }
  }
}

TEST(Utf8, TheFirstInvalidByteIsFound) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("na\u00EFve \U0001F600"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("ab\xE4"), 2u);              // Latin-1
  EXPECT_EQ(first_invalid_utf8("\xC0\x80"), 0u);            // overlong
  EXPECT_EQ(first_invalid_utf8("x\xED\xA0\x80"), 1u);       // a surrogate
  EXPECT_EQ(first_invalid_utf8("xy\xF4\x90\x80\x80"), 2u);  // beyond U+10FFFF
}

}  // namespace
}  // namespace regard
