#include "text/display.h"

#include <gtest/gtest.h>

#include "text/specs.h"

namespace regard {
namespace {

TEST(Display, ValidTextIsShownAsItIs) {
  for (const std::string text : {"", "Hello world", "na\u00EFve", "\u6211\u6628\u5929", "\U0001F600", "a\\b \"c\"",
                                 "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\u0645\u0631", "e\u0301", "\u00A0"})
    EXPECT_EQ(display(text), text);
}

TEST(Display, PartsOfACharacterAreBytes) {
  EXPECT_EQ(display("\xE6\x88"), "\\xE6\\x88");
  EXPECT_EQ(display("\x91"), "\\x91");
  EXPECT_EQ(display("a\xF0\x9F"), "a\\xF0\\x9F");
  EXPECT_EQ(display("\xFFx\xC3\xA9"), "\\xFFx\u00E9");
  // A character that two tokens share: each shows its own bytes, together they are whole.
  const std::string character = "\u6211";
  EXPECT_EQ(display(character.substr(0, 2)) + display(character.substr(2)), "\\xE6\\x88\\x91");
  EXPECT_EQ(display(character), character);
}

TEST(Display, NothingThatATerminalObeysGetsThrough) {
  EXPECT_EQ(display("a\nb\tc\r"), "a\\nb\\tc\\r");
  EXPECT_EQ(display(std::string("\0\x1B[31m\x7F", 7)), "\\x00\\x1B[31m\\x7F");
  EXPECT_EQ(display("\u0085\u009B"), "\\u0085\\u009B");               // C1 controls are not the bytes 0x85 and 0x9B
  EXPECT_EQ(display("\u202Eevil"), "\\u202Eevil");                    // turns the direction of writing
  EXPECT_EQ(display("\u200B\uFEFF\u2028"), "\\u200B\\uFEFF\\u2028");  // cannot be seen
  EXPECT_EQ(display("\u200D"), "\\u200D");                            // joins nothing
  EXPECT_EQ(display("\U000E0001"), "\\U000E0001");
  std::mt19937 rng(11);
  for (int i = 0; i < 3000; ++i) {
    const std::string shown = display(testing::random_bytes(rng));
    EXPECT_FALSE(first_invalid_utf8(shown));
    for (const char c : shown) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
    EXPECT_EQ(shown.find('\x7F'), std::string::npos);
    EXPECT_EQ(display(shown), shown);
  }
}

TEST(Columns, AsATerminalCounts) {
  EXPECT_EQ(columns(""), 0);
  EXPECT_EQ(columns("Hello"), 5);
  EXPECT_EQ(columns("\u6211\u6628"), 4);
  EXPECT_EQ(columns("\uAC01"), 2);
  EXPECT_EQ(columns("e\u0301"), 1);
  EXPECT_EQ(columns("\U0001F600"), 2);
  EXPECT_EQ(columns("\U0001F44D\U0001F3FD"), 2);                        // a thumb and its skin
  EXPECT_EQ(columns("\U0001F468\u200D\U0001F469\u200D\U0001F467"), 2);  // a family is one character
  EXPECT_EQ(columns("\U0001F1E8\U0001F1F3\U0001F1E9\U0001F1EA"), 4);    // two flags
  EXPECT_EQ(columns("\u2764"), 1);
  EXPECT_EQ(columns("\u2764\uFE0F"), 2);  // in its form as an emoji
  EXPECT_EQ(columns("\\xE4"), 4);
  EXPECT_EQ(columns("\xE4"), 1);  // shown as one replacement sign
  EXPECT_EQ(columns("ab\u6211c"), 5);
}

}  // namespace
}  // namespace regard
