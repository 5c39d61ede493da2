#include "report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace regard {
namespace {

constexpr int kNarrowest = 20, kWidest = 1000;

Colours colours_of(std::string_view term, std::string_view color_term) {
  if (term == "dumb") return Colours::none;
  if (color_term == "truecolor" || color_term == "24bit") return Colours::all;
  for (const std::string_view known : {"direct", "kitty", "alacritty", "foot", "wezterm", "ghostty"})
    if (term.find(known) != term.npos) return Colours::all;
  if (term.find("256color") != term.npos) return Colours::many;
  return term.empty() ? Colours::none : Colours::few;
}

}  // namespace

Terminal describe_terminal(int descriptor, bool no_color, const std::function<const char*(const char*)>& variable) {
  const auto text = [&](const char* name) {
    const char* value = variable(name);
    return std::string_view(value ? value : "");
  };
  Terminal terminal;
  terminal.interactive = isatty(descriptor) == 1;
  winsize size{};
  if (terminal.interactive && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.columns = size.ws_col;
  else if (const int columns = std::atoi(std::string(text("COLUMNS")).c_str()); columns > 0)
    terminal.columns = columns;
  terminal.columns = std::clamp(terminal.columns, kNarrowest, kWidest);

  const std::string_view forced = text("CLICOLOR_FORCE");
  const bool force = !forced.empty() && forced != "0";
  if (no_color || !text("NO_COLOR").empty() || !(terminal.interactive || force)) return terminal;
  terminal.colours = colours_of(text("TERM"), text("COLORTERM"));
  if (force && terminal.colours == Colours::none) terminal.colours = Colours::few;
  return terminal;
}

}  // namespace regard
