#include "report/json_writer.h"

#include <charconv>
#include <cmath>

#include "text/utf8.h"

namespace regard {
namespace {

// What follows a backslash for a character that JSON does not allow as it is; 0 = \u00XX.
char short_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

constexpr char kHexDigits[] = "0123456789ABCDEF";

}  // namespace

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (first_.empty()) return;
  if (!first_.back()) out_.write(",");
  first_.back() = 0;
}

void JsonWriter::open(char bracket) {
  before_value();
  out_.write({&bracket, 1});
  first_.push_back(1);
}

void JsonWriter::close(char bracket) {
  first_.pop_back();
  if (first_.empty() && bracket == '}') out_.write("\n");
  out_.write({&bracket, 1});
}

void JsonWriter::key(std::string_view name) {
  if (!first_.back()) out_.write(",");
  if (first_.size() == 1) out_.write("\n");
  first_.back() = 1;  // the string that follows is not a value of its own
  string(name);
  first_.back() = 0;
  out_.write(first_.size() == 1 ? ": " : ":");
  after_key_ = true;
}

void JsonWriter::string(std::string_view bytes) {
  before_value();
  out_.write("\"");
  std::size_t plain = 0;  // start of what can be written as it is
  std::size_t i = 0;
  const auto flush_plain = [&] { out_.write(bytes.substr(plain, i - plain)); };
  while (i < bytes.size()) {
    const unsigned char c = static_cast<unsigned char>(bytes[i]);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      ++i;
      continue;
    }
    if (c >= 0x80) {
      if (const Character character = character_at(bytes, i); character.code != kInvalidByte) {
        i += character.length;
        continue;
      }
      flush_plain();
      const char escape[] = {'\\', '\\', 'x', kHexDigits[c >> 4], kHexDigits[c & 15]};
      out_.write({escape, 5});
    } else {
      flush_plain();
      if (const char letter = short_escape(static_cast<char>(c))) {
        const char escape[] = {'\\', letter};
        out_.write({escape, 2});
      } else {
        const char escape[] = {'\\', 'u', '0', '0', kHexDigits[c >> 4], kHexDigits[c & 15]};
        out_.write({escape, 6});
      }
    }
    plain = ++i;
  }
  flush_plain();
  out_.write("\"");
}

void JsonWriter::integer(std::int64_t value) {
  before_value();
  char text[24];
  out_.write({text, static_cast<std::size_t>(std::to_chars(text, text + sizeof text, value).ptr - text)});
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  before_value();
  if (value == 0 && std::signbit(value))
    return out_.write("-0.0");  // "-0" would be read as a whole number, which has no sign
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 9).ptr;
  out_.write({text, static_cast<std::size_t>(end - text)});
}

void JsonWriter::boolean(bool value) {
  before_value();
  out_.write(value ? "true" : "false");
}

void JsonWriter::null() {
  before_value();
  out_.write("null");
}

void JsonWriter::numbers(std::span<const float> values) {
  begin_array();
  for (const float value : values) number(value);
  end_array();
}

void JsonWriter::integers(std::span<const std::int64_t> values) {
  begin_array();
  for (const std::int64_t value : values) integer(value);
  end_array();
}

void JsonWriter::end_document() { out_.write("\n"); }

}  // namespace regard
