#include "text_stream.h"

#include <unistd.h>

#include "report/output.h"
#include "text/display.h"
#include "text/utf8.h"

namespace regard::cli {
namespace {

// Bytes of `text` up to a character that may still become whole (at most its last three bytes).
std::size_t whole_part(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

void TextStream::add(std::string_view bytes) {
  if (!terminal_) return print(bytes);
  held_ += bytes;
  const std::size_t whole = whole_part(held_);
  std::string shown;
  for (std::size_t i = 0; i < whole;) {
    const std::size_t n = character_at(held_, i).length;
    const std::string_view character = std::string_view(held_).substr(i, n);
    shown += character == "\n" || character == "\t" ? std::string(character) : display(character);
    i += n;
  }
  held_.erase(0, whole);
  print(shown);
}

void TextStream::finish() {
  print(display(held_) + '\n');
  held_.clear();
}

void TextStream::print(std::string_view text) {
  Output out = Output::to_descriptor(STDOUT_FILENO, "standard output");
  out.write(text);
  out.finish();
}

}  // namespace regard::cli
