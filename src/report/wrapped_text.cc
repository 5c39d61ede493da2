#include "report/wrapped_text.h"

#include "text/display.h"
#include "text/utf8.h"

namespace regard {

std::string wrapped_at(const std::string& text, int width) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t next = at + character_at(text, at).length;
    if (columns(std::string_view(text).substr(0, next)) > width) break;
    at = next;
  }
  return text.substr(0, at);
}

std::vector<std::string> wrapped(std::string_view text, int width) {
  std::vector<std::string> lines;
  std::string line, word;
  const auto put_line = [&] {
    while (line.ends_with(' ')) line.pop_back();
    lines.push_back(line);
    line.clear();
  };
  const auto put_word = [&] {
    if (!line.empty() && columns(std::string_view(line)) + columns(std::string_view(word)) > width) put_line();
    line += word;
    word.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, character_at(text, at).length);
    at += character.size();
    if (character == " ") {
      put_word();
      if (!line.empty()) line += ' ';
      continue;
    }
    // A Chinese character is a word; a mark of punctuation stays with what it follows.
    constexpr std::string_view kClosing = "，。：；、）”？！";
    const bool wide = columns(character) == 2;
    if (wide && kClosing.find(character) == kClosing.npos && !word.ends_with("（") && !word.ends_with("“")) put_word();
    word += character;
    const bool next_closes =
        at < text.size() && kClosing.find(text.substr(at, character_at(text, at).length)) != kClosing.npos;
    if (wide && !next_closes && character != "（" && character != "“") put_word();
  }
  put_word();
  if (!line.empty()) put_line();
  return lines;
}

void add_wrapped_text(Page& page, std::string_view text, int width, int indent, Style style) {
  for (const std::string& line : wrapped(text, width))
    page.add_line(std::string(static_cast<std::size_t>(indent), ' ') + line, style);
}

}  // namespace regard
