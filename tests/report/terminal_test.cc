#include "report/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <map>
#include <string>

namespace regard {
namespace {

using Environment = std::map<std::string, std::string>;

Terminal described(int descriptor, bool no_color, const Environment& environment) {
  return describe_terminal(descriptor, no_color, [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

class OnATerminal : public ::testing::Test {
 protected:
  void SetUp() override {
    master_ = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_GE(master_, 0);
    ASSERT_EQ(grantpt(master_), 0);
    ASSERT_EQ(unlockpt(master_), 0);
    terminal_ = open(ptsname(master_), O_RDWR | O_NOCTTY);
    ASSERT_GE(terminal_, 0);
  }
  void TearDown() override {
    close(terminal_);
    close(master_);
  }
  int master_ = -1, terminal_ = -1;
};

TEST_F(OnATerminal, ColoursFollowTheEnvironment) {
  const auto colours = [&](const Environment& environment) { return described(terminal_, false, environment).colours; };
  EXPECT_EQ(colours({{"TERM", "xterm-256color"}, {"COLORTERM", "truecolor"}}), Colours::all);
  EXPECT_EQ(colours({{"TERM", "xterm-kitty"}}), Colours::all);
  EXPECT_EQ(colours({{"TERM", "xterm-256color"}}), Colours::many);
  EXPECT_EQ(colours({{"TERM", "linux"}}), Colours::few);
  EXPECT_EQ(colours({{"TERM", "dumb"}, {"COLORTERM", "truecolor"}}), Colours::none);
  EXPECT_EQ(colours({}), Colours::none);
  EXPECT_EQ(colours({{"TERM", "xterm-256color"}, {"NO_COLOR", "1"}}), Colours::none);
  EXPECT_EQ(colours({{"TERM", "xterm-256color"}, {"NO_COLOR", ""}}), Colours::many);  // no-color.org: not empty
  EXPECT_EQ(described(terminal_, true, {{"TERM", "xterm-256color"}}).colours, Colours::none);
  EXPECT_TRUE(described(terminal_, false, {}).interactive);
}

TEST_F(OnATerminal, WidthIsTheTerminals) {
  winsize size{.ws_row = 24, .ws_col = 133, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(described(terminal_, false, {{"COLUMNS", "50"}}).columns, 133);
  size.ws_col = 0;
  ioctl(master_, TIOCSWINSZ, &size);
  EXPECT_EQ(described(terminal_, false, {{"COLUMNS", "50"}}).columns, 50);
  EXPECT_EQ(described(terminal_, false, {}).columns, 80);
}

TEST(Terminal, AFileIsNone) {
  const int file = open("/dev/null", O_WRONLY);
  const Environment environment = {{"TERM", "xterm-256color"}, {"COLORTERM", "truecolor"}, {"COLUMNS", "100"}};
  const Terminal terminal = described(file, false, environment);
  EXPECT_FALSE(terminal.interactive);
  EXPECT_EQ(terminal.colours, Colours::none);
  EXPECT_EQ(terminal.columns, 100);
  EXPECT_EQ(described(file, false, {{"COLUMNS", "nonsense"}}).columns, 80);
  EXPECT_EQ(described(file, false, {{"COLUMNS", "1"}}).columns, 20);
  Environment forced = environment;
  forced["CLICOLOR_FORCE"] = "1";
  EXPECT_EQ(described(file, false, forced).colours, Colours::all);
  EXPECT_EQ(described(file, true, forced).colours, Colours::none);
  EXPECT_EQ(described(file, false, {{"CLICOLOR_FORCE", "1"}}).colours, Colours::few);
  close(file);
}

}  // namespace
}  // namespace regard
