// Typed access to what read_gguf found.

#include <cstring>
#include <limits>

#include "tensor/error.h"
#include "weights/gguf.h"

namespace regard {

namespace {

template <typename T>
T stored(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

[[noreturn]] void wrong_type(const GgufFile& gguf, std::string_view key, std::string_view wanted, GgufType found) {
  throw Error(ErrorCode::bad_input, fmt::format("{}: the metadata key {} should be {} but is {}", gguf.file,
                                                in_quotes(key), wanted, name_of(found)));
}

const GgufValue* find(const GgufFile& gguf, std::string_view key) {
  const auto at = gguf.metadata.find(key);
  return at == gguf.metadata.end() ? nullptr : &at->second;
}

template <typename T>
const T* find_as(const GgufFile& gguf, std::string_view key, std::string_view wanted) {
  const GgufValue* value = find(gguf, key);
  if (value == nullptr) return nullptr;
  const T* typed = std::get_if<T>(&value->value);
  if (typed == nullptr) wrong_type(gguf, key, wanted, value->type);
  return typed;
}

template <typename T>
T required(const GgufFile& gguf, std::string_view key, std::optional<T> value) {
  if (!value)
    throw Error(ErrorCode::bad_input, fmt::format("{}: the metadata key {} is missing", gguf.file, in_quotes(key)));
  return *value;
}

}  // namespace

std::string_view name_of(GgufType type) {
  static constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                               "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<std::uint32_t>(type)];
}

std::string in_quotes(std::string_view text) {
  static constexpr std::size_t kLongest = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kLongest)) {
    if (c >= 0x20 && c < 0x7f)
      out += c;
    else
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
  }
  return out + (text.size() > kLongest ? "...'" : "'");
}

std::int64_t GgufArray::integer(std::int64_t i) const {
  switch (element) {
    case GgufType::u8:
      return stored<std::uint8_t>(data + i);
    case GgufType::i8:
      return stored<std::int8_t>(data + i);
    case GgufType::u16:
      return stored<std::uint16_t>(data + i * 2);
    case GgufType::i16:
      return stored<std::int16_t>(data + i * 2);
    case GgufType::u32:
      return stored<std::uint32_t>(data + i * 4);
    case GgufType::i32:
      return stored<std::int32_t>(data + i * 4);
    case GgufType::i64:
      return stored<std::int64_t>(data + i * 8);
    case GgufType::u64: {
      const std::uint64_t value = stored<std::uint64_t>(data + i * 8);
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        throw Error(ErrorCode::bad_input, fmt::format("the array element {} is too large: {}", i, value));
      return static_cast<std::int64_t>(value);
    }
    default:
      throw Error(ErrorCode::bad_input, fmt::format("an array of {} holds no integers", name_of(element)));
  }
}

double GgufArray::number(std::int64_t i) const {
  if (element == GgufType::f32) return stored<float>(data + i * 4);
  if (element == GgufType::f64) return stored<double>(data + i * 8);
  return static_cast<double>(integer(i));
}

std::optional<std::int64_t> GgufFile::find_integer(std::string_view key) const {
  const GgufValue* value = regard::find(*this, key);
  if (value == nullptr) return std::nullopt;
  if (const auto* i = std::get_if<std::int64_t>(&value->value)) return *i;
  const auto* u = std::get_if<std::uint64_t>(&value->value);
  if (u == nullptr) wrong_type(*this, key, "an integer", value->type);
  if (*u > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: the metadata key {} is too large: {}", file, in_quotes(key), *u));
  return static_cast<std::int64_t>(*u);
}

std::optional<double> GgufFile::find_number(std::string_view key) const {
  const GgufValue* value = regard::find(*this, key);
  if (value == nullptr) return std::nullopt;
  if (const auto* d = std::get_if<double>(&value->value)) return *d;
  if (const auto* i = std::get_if<std::int64_t>(&value->value)) return static_cast<double>(*i);
  if (const auto* u = std::get_if<std::uint64_t>(&value->value)) return static_cast<double>(*u);
  wrong_type(*this, key, "a number", value->type);
}

std::optional<bool> GgufFile::find_bool(std::string_view key) const {
  const bool* value = find_as<bool>(*this, key, "a bool");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::string_view> GgufFile::find_string(std::string_view key) const {
  const std::string_view* value = find_as<std::string_view>(*this, key, "a string");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

const GgufArray* GgufFile::find_array(std::string_view key) const { return find_as<GgufArray>(*this, key, "an array"); }

std::optional<std::vector<std::int64_t>> GgufFile::find_integers(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (array == nullptr) return std::nullopt;
  std::vector<std::int64_t> values(static_cast<std::size_t>(array->count));
  try {
    for (std::int64_t i = 0; i < array->count; ++i) values[static_cast<std::size_t>(i)] = array->integer(i);
  } catch (const Error& error) {
    throw Error(error.code, fmt::format("{}: the metadata key {}: {}", file, in_quotes(key), error.message));
  }
  return values;
}

std::int64_t GgufFile::integer(std::string_view key) const { return required(*this, key, find_integer(key)); }
double GgufFile::number(std::string_view key) const { return required(*this, key, find_number(key)); }
std::string_view GgufFile::string(std::string_view key) const { return required(*this, key, find_string(key)); }

}  // namespace regard
