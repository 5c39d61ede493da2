#include "report/csv_writer.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <string>

#include "text/utf8.h"

namespace regard {

void CsvWriter::separate() {
  if (!first_) out_.write(",");
  first_ = false;
}

void CsvWriter::text(std::string_view bytes) {
  separate();
  std::string quoted = "\"";
  for (std::size_t i = 0; i < bytes.size();) {
    const Character character = character_at(bytes, i);
    if (character.code == kInvalidByte) {
      quoted += fmt::format("\\x{:02X}", static_cast<unsigned char>(bytes[i]));
    } else {
      if (character.code == '"') quoted += '"';
      quoted += bytes.substr(i, character.length);
    }
    i += character.length;
  }
  out_.write(quoted + '"');
}

void CsvWriter::integer(std::int64_t value) {
  separate();
  char text[24];
  out_.write({text, static_cast<std::size_t>(std::to_chars(text, text + sizeof text, value).ptr - text)});
}

void CsvWriter::number(double value) {
  separate();
  if (!std::isfinite(value)) return;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 9).ptr;
  out_.write({text, static_cast<std::size_t>(end - text)});
}

void CsvWriter::end_row() {
  out_.write("\r\n");
  first_ = true;
}

}  // namespace regard
