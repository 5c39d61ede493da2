#include "weights/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "tensor/error.h"
#include "weights/gguf.h"

namespace regard {

namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;  // bytes, as in safetensors/src/tensor.rs
constexpr std::size_t kMostAxes = 64;                  // as in PyTorch

[[noreturn]] void damaged(const std::string& file, const std::string& what) {
  throw Error(ErrorCode::bad_input, fmt::format("{}: {}", file, what),
              "the file is damaged or not a safetensors file; fetch it again");
}

// The text of the header, event by event: nothing is built on the way, so neither nesting nor length of what does not
// belong there costs memory. Every event that does not fit where it comes is an error.
class HeaderEvents {
 public:
  HeaderEvents(std::string file, std::int64_t data_bytes, SafetensorsHeader& header)
      : file_(std::move(file)), data_bytes_(data_bytes), header_(header) {}

  bool start_object(std::size_t) {
    if (at_ == At::start) return enter(At::header);
    if (at_ == At::tensor) return enter(At::field);
    if (at_ == At::metadata) return enter(At::metadata_key);
    misplaced("an object");
  }
  bool key(std::string& name) {
    if (at_ == At::header) {
      name_ = name;
      if (name == "__metadata__") {
        if (std::exchange(has_metadata_, true)) fail("'__metadata__' is there twice");
        return enter(At::metadata);
      }
      entry_ = {};
      fields_ = 0;
      return enter(At::tensor);
    }
    if (at_ == At::metadata_key) {
      metadata_key_ = name;
      return enter(At::metadata_value);
    }
    static constexpr std::pair<std::string_view, At> fields[] = {
        {"dtype", At::type}, {"shape", At::shape}, {"data_offsets", At::offsets}};
    for (const auto& [field, place] : fields) {
      if (name != field) continue;
      const unsigned bit = 1u << static_cast<unsigned>(place);
      if (fields_ & bit) fail(fmt::format("the tensor {} has {} twice", in_quotes(name_), in_quotes(name)));
      fields_ |= bit;
      return enter(place);
    }
    fail(fmt::format("the tensor {} has a field {} that the format does not know", in_quotes(name_), in_quotes(name)));
  }
  bool end_object() {
    if (at_ == At::header) return enter(At::end);
    if (at_ == At::field) finish_tensor();
    return enter(At::header);
  }
  bool start_array(std::size_t) {
    if (at_ == At::shape) return enter(At::shape_number);
    if (at_ == At::offsets) return enter(At::first_offset);
    misplaced("an array");
  }
  bool end_array() {
    if (at_ == At::first_offset || at_ == At::second_offset)
      fail(fmt::format("the tensor {} has fewer than two 'data_offsets'", in_quotes(name_)));
    return enter(At::field);
  }
  bool string(std::string& text) {
    if (at_ == At::metadata_value) {
      if (!header_.metadata.emplace(metadata_key_, text).second)
        fail(fmt::format("'__metadata__' has {} twice", in_quotes(metadata_key_)));
      return enter(At::metadata_key);
    }
    if (at_ != At::type) misplaced("a text");
    entry_.type = find_safetensors_type(text);
    if (entry_.type == nullptr)
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: the tensor {} is stored as {}, a number type that safetensors files do not have",
                              file_, in_quotes(name_), in_quotes(text)));
    return enter(At::field);
  }
  bool number_unsigned(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail(fmt::format("the tensor {} has a number that is too large: {}", in_quotes(name_), value));
    const auto number = static_cast<std::int64_t>(value);
    if (at_ == At::shape_number) {
      if (entry_.shape.size() == kMostAxes)
        fail(fmt::format("the tensor {} has more than {} axes", in_quotes(name_), kMostAxes));
      entry_.shape.push_back(number);
      return true;
    }
    if (at_ == At::first_offset) {
      entry_.begin = number;
      return enter(At::second_offset);
    }
    if (at_ == At::second_offset) {
      entry_.end = number;
      return enter(At::no_more_offsets);
    }
    misplaced("a number");
  }
  bool number_integer(std::int64_t value) { misplaced(fmt::format("{}", value)); }
  bool number_float(double, const std::string& text) { misplaced(in_quotes(text)); }
  bool null() { misplaced("null"); }
  bool boolean(bool value) { misplaced(value ? "true" : "false"); }
  bool binary(std::vector<std::uint8_t>&) { misplaced("binary"); }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception&) {
    fail(fmt::format("byte {}: the header is not JSON", byte + 7));  // counted from 1, after the 8 of the length
  }

 private:
  enum class At {
    start,
    header,        // between tensors
    tensor,        // its object comes
    field,         // between its fields
    type,          // a text comes
    shape,         // an array comes
    shape_number,  // or its end
    offsets,       // an array comes
    first_offset,
    second_offset,
    no_more_offsets,  // its end comes
    metadata,         // an object comes
    metadata_key,     // or its end
    metadata_value,   // a text comes
    end
  };

  [[noreturn]] void fail(const std::string& what) const { damaged(file_, what); }
  bool enter(At place) {
    at_ = place;
    return true;
  }

  [[noreturn]] void misplaced(const std::string& what) const {
    switch (at_) {
      case At::start:
        fail("the header is not a JSON object");
      case At::metadata:
      case At::metadata_value:
        fail(fmt::format("'__metadata__' has {} where only texts are allowed", what));
      case At::type:
        fail(fmt::format("the 'dtype' of the tensor {} is {}, not a text", in_quotes(name_), what));
      case At::shape:
      case At::shape_number:
        fail(fmt::format("the 'shape' of the tensor {} has {} where a whole number from 0 should be", in_quotes(name_),
                         what));
      case At::tensor:
        fail(fmt::format("the tensor {} is {}, not an object", in_quotes(name_), what));
      default:
        fail(fmt::format("the 'data_offsets' of the tensor {} are not two whole numbers from 0", in_quotes(name_)));
    }
  }

  // Everything that can be said of a tensor by itself; and that all together are not more than the data.
  void finish_tensor() {
    const std::string name = in_quotes(name_);
    for (const auto& [field, place] :
         {std::pair{"dtype", At::type}, {"shape", At::shape}, {"data_offsets", At::offsets}})
      if (!(fields_ & 1u << static_cast<unsigned>(place))) fail(fmt::format("the tensor {} has no '{}'", name, field));
    std::int64_t bits = entry_.type->bits;
    // In this order, as the public reader: [0, 2^62, 2^62] is nothing, [2^62, 2^62, 0] is refused.
    std::int64_t count = 1;
    for (const std::int64_t n : entry_.shape)
      if (__builtin_mul_overflow(count, n, &count)) fail(fmt::format("the shape of the tensor {} is too large", name));
    if (__builtin_mul_overflow(bits, count, &bits)) fail(fmt::format("the shape of the tensor {} is too large", name));
    if (bits % 8 != 0) fail(fmt::format("the tensor {} ends inside a byte", name));
    if (entry_.begin > entry_.end) fail(fmt::format("the tensor {} ends before it begins", name));
    if (entry_.end > data_bytes_)
      fail(fmt::format("the tensor {} ends at byte {} of the data, of which there are only {}", name, entry_.end,
                       data_bytes_));
    if (entry_.end - entry_.begin != bits / 8)
      fail(fmt::format("the tensor {} should have {} bytes by its shape but has {}", name, bits / 8,
                       entry_.end - entry_.begin));
    // Millions of tensors over the same bytes are refused here, before they are kept.
    described_ += entry_.end - entry_.begin;
    if (described_ > data_bytes_) fail(fmt::format("the tensor {} overlaps another one", name));
    if (!header_.entries.emplace(std::move(name_), std::move(entry_)).second)
      fail(fmt::format("the tensor {} is there twice", name));
  }

  std::string file_;
  std::int64_t data_bytes_;
  SafetensorsHeader& header_;
  At at_ = At::start;
  bool has_metadata_ = false;
  unsigned fields_ = 0;  // seen of this tensor: a bit for each At of a field
  std::string name_, metadata_key_;
  SafetensorsEntry entry_;
  std::int64_t described_ = 0;  // bytes of all tensors so far; at most twice the file, so the sum cannot overflow
};

// Sorted by place, each must begin where the one before it ended.
void must_tile(const std::string& file, const SafetensorsHeader& header, std::int64_t data_bytes) {
  std::vector<const std::pair<const std::string, SafetensorsEntry>*> sorted;
  sorted.reserve(header.entries.size());
  for (const auto& entry : header.entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::int64_t at = 0;
  for (const auto* entry : sorted) {
    if (entry->second.begin != at)
      damaged(file, fmt::format("the tensor {} begins at byte {} of the data, but the one before it ends at {}",
                                in_quotes(entry->first), entry->second.begin, at));
    at = entry->second.end;
  }
  if (at != data_bytes)
    damaged(file, fmt::format("the tensors end at byte {} of the data, of which there are {}", at, data_bytes));
}

}  // namespace

SafetensorsHeader read_safetensors_header(const MappedFile& file) {
  const std::string name = file.path().string();
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), static_cast<std::size_t>(file.size()));
  if (bytes.starts_with("version https://git-lfs"))
    throw Error(ErrorCode::bad_input, fmt::format("{}: this is a pointer of Git LFS, not the weights", name),
                "get the weights themselves: `git lfs pull`, or regard fetch");
  std::uint64_t length = 0;
  if (bytes.size() < 8) damaged(name, fmt::format("the file has only {} bytes", bytes.size()));
  std::memcpy(&length, bytes.data(), 8);
  if (length > kLongestHeader)
    damaged(name,
            fmt::format("the header is said to have {} bytes; the longest allowed is {}", length, kLongestHeader));
  if (length > bytes.size() - 8)
    damaged(name, fmt::format("the header is said to have {} bytes, but only {} are left", length, bytes.size() - 8));
  const std::string_view text = bytes.substr(8, length);
  // The JSON reader would skip a byte order mark, and take a zero byte for the end.
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{') damaged(name, "the header does not begin with {");
  if (text.find('\0') != text.npos) damaged(name, "the header has a zero byte in it");

  SafetensorsHeader header;
  header.data_offset = static_cast<std::int64_t>(8 + length);
  const std::int64_t data_bytes = file.size() - header.data_offset;
  HeaderEvents events(name, data_bytes, header);
  nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  must_tile(name, header, data_bytes);
  return header;
}

}  // namespace regard
