// Reading the header of a GGUF file that may be anything: every length is compared with the bytes that are left before
// it is used, every product and sum is checked, nothing is allocated on the word of a count.

#include <bit>
#include <cstring>
#include <limits>

#include "tensor/error.h"
#include "weights/gguf.h"

namespace regard {

namespace {

static_assert(std::endian::native == std::endian::little, "weights are used as stored: little endian");

constexpr std::uint64_t kLongestString = 64u << 20;    // bytes; a chat template or piece has no need for more
constexpr std::uint64_t kLongestArray = 1u << 30;      // elements
constexpr std::uint64_t kLargestAlignment = 1u << 20;  // bytes
constexpr std::size_t kLongestTensorName = 63;         // bytes, as in ggml
constexpr std::uint32_t kMostGgufAxes = 4;
constexpr std::uint64_t kSmallestEntry = 8 + 1 + 4 + 1;       // key length, key, type, value
constexpr std::uint64_t kSmallestTensor = 8 + 1 + 4 + 4 + 8;  // name length, name, axes, type, offset

// Bytes of one value, 0 for strings and arrays.
int size_of(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    default:
      return 0;
  }
}

class Reader {
 public:
  explicit Reader(const MappedFile& file)
      : name_(file.path().string()), data_(file.data()), size_(static_cast<std::uint64_t>(file.size())) {}

  GgufFile read();

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> what, Args&&... args) const {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: byte {}: {}", name_, at_, fmt::format(what, std::forward<Args>(args)...)),
                "the file is damaged or not a GGUF file; fetch it again");
  }
  [[noreturn]] void refuse(std::string message) const { throw Error(ErrorCode::unsupported, name_ + ": " + message); }

  std::uint64_t left() const { return size_ - at_; }
  template <typename T>
  T number(std::string_view what) {
    if (left() < sizeof(T)) fail("the file ends inside {}", what);
    T value;
    std::memcpy(&value, data_ + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string_view string(std::string_view what);
  GgufType value_type(std::string_view key);
  bool boolean(std::string_view key);
  GgufArray array(std::string_view key);
  GgufValue value(std::string_view key);
  std::uint64_t count(std::string_view what, std::uint64_t smallest);
  void entry(GgufFile& gguf);
  void tensor(GgufFile& gguf, std::uint64_t& data_bytes);
  std::int64_t alignment(const GgufFile& gguf) const;

  std::string name_;
  const std::byte* data_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;
};

std::string_view Reader::string(std::string_view what) {
  const std::uint64_t length = number<std::uint64_t>(what);
  if (length > left()) fail("{} is said to have {} bytes, but only {} are left", what, length, left());
  if (length > kLongestString)
    fail("{} is said to have {} bytes; the longest allowed is {}", what, length, kLongestString);
  const std::string_view text(reinterpret_cast<const char*>(data_ + at_), length);
  at_ += length;
  return text;
}

GgufType Reader::value_type(std::string_view key) {
  const std::uint32_t type = number<std::uint32_t>("the type of a value");
  if (type > static_cast<std::uint32_t>(GgufType::f64))
    fail("the metadata key {} has the unknown type {}", in_quotes(key), type);
  return static_cast<GgufType>(type);
}

bool Reader::boolean(std::string_view key) {
  const std::uint8_t byte = number<std::uint8_t>("a bool");
  if (byte > 1) fail("the metadata key {} has the bool {}, neither 0 nor 1", in_quotes(key), byte);
  return byte == 1;
}

GgufArray Reader::array(std::string_view key) {
  GgufArray array;
  array.element = value_type(key);
  const std::uint64_t count = number<std::uint64_t>("the length of an array");
  if (array.element == GgufType::array)
    fail("the metadata key {} is an array of arrays, which is not allowed", in_quotes(key));
  const std::uint64_t smallest =
      array.element == GgufType::string ? 8 : static_cast<std::uint64_t>(size_of(array.element));
  if (count > kLongestArray || count > left() / smallest)
    fail("the metadata key {} is said to have {} elements, but only {} bytes are left", in_quotes(key), count, left());
  array.count = static_cast<std::int64_t>(count);
  if (array.element == GgufType::string) {
    array.strings.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) array.strings.push_back(string("a string of an array"));
  } else if (array.element == GgufType::boolean) {
    array.data = data_ + at_;
    for (std::uint64_t i = 0; i < count; ++i) boolean(key);
  } else {
    array.data = data_ + at_;
    at_ += count * smallest;
  }
  return array;
}

GgufValue Reader::value(std::string_view key) {
  GgufValue v;
  v.type = value_type(key);
  const std::string_view what = "a value";
  switch (v.type) {
    case GgufType::u8:
      v.value = std::uint64_t{number<std::uint8_t>(what)};
      break;
    case GgufType::u16:
      v.value = std::uint64_t{number<std::uint16_t>(what)};
      break;
    case GgufType::u32:
      v.value = std::uint64_t{number<std::uint32_t>(what)};
      break;
    case GgufType::u64:
      v.value = number<std::uint64_t>(what);
      break;
    case GgufType::i8:
      v.value = std::int64_t{number<std::int8_t>(what)};
      break;
    case GgufType::i16:
      v.value = std::int64_t{number<std::int16_t>(what)};
      break;
    case GgufType::i32:
      v.value = std::int64_t{number<std::int32_t>(what)};
      break;
    case GgufType::i64:
      v.value = number<std::int64_t>(what);
      break;
    case GgufType::f32:
      v.value = double{number<float>(what)};
      break;
    case GgufType::f64:
      v.value = number<double>(what);
      break;
    case GgufType::boolean:
      v.value = boolean(key);
      break;
    case GgufType::string:
      v.value = string("a string");
      break;
    case GgufType::array:
      v.value = array(key);
      break;
  }
  return v;
}

std::uint64_t Reader::count(std::string_view what, std::uint64_t smallest) {
  const std::uint64_t n = number<std::uint64_t>("the header");
  if (n > size_ / smallest) fail("the file is said to have {} {}, more than its {} bytes can hold", n, what, size_);
  return n;
}

void Reader::entry(GgufFile& gguf) {
  const std::string_view key = string("a metadata key");
  if (key.empty()) fail("a metadata key is empty");
  if (gguf.metadata.contains(key)) fail("the metadata key {} comes twice", in_quotes(key));
  gguf.metadata.emplace(key, value(key));
}

std::int64_t Reader::alignment(const GgufFile& gguf) const {
  const auto found = gguf.metadata.find("general.alignment");
  if (found == gguf.metadata.end()) return 32;
  if (found->second.type != GgufType::u32)
    fail("general.alignment should be u32 but is {}", name_of(found->second.type));
  const std::uint64_t alignment = std::get<std::uint64_t>(found->second.value);
  if (!std::has_single_bit(alignment) || alignment > kLargestAlignment)
    fail("general.alignment is {}; it should be a power of two, at most {}", alignment, kLargestAlignment);
  return static_cast<std::int64_t>(alignment);
}

// `data_bytes`: of the tensors so far, padding included; offsets must count up without holes.
void Reader::tensor(GgufFile& gguf, std::uint64_t& data_bytes) {
  static constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::string_view name = string("a tensor's name");
  if (name.empty()) fail("a tensor's name is empty");
  if (name.size() > kLongestTensorName)
    fail("the tensor name {} has {} bytes; the longest allowed is {}", in_quotes(name), name.size(),
         kLongestTensorName);
  if (gguf.tensors.contains(name)) fail("the tensor {} comes twice", in_quotes(name));

  GgufTensor tensor;
  const std::uint32_t axes = number<std::uint32_t>("a tensor's axes");
  if (axes > kMostGgufAxes)
    fail("the tensor {} has {} axes; the most allowed is {}", in_quotes(name), axes, kMostGgufAxes);
  std::uint64_t elements = 1;
  for (std::uint32_t axis = 0; axis < axes; ++axis) {
    const std::uint64_t extent = number<std::uint64_t>("a tensor's shape");
    if (extent > kMost)
      fail("the tensor {} has the extent {}, which is negative or too large", in_quotes(name), extent);
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > kMost)
      fail("the tensor {} has more elements than can be counted", in_quotes(name));
    tensor.shape.push_back(static_cast<std::int64_t>(extent));
  }

  const std::uint32_t type = number<std::uint32_t>("a tensor's type");
  tensor.type = find_gguf_tensor_type(type);
  if (tensor.type == nullptr) fail("the tensor {} has the unknown type {}", in_quotes(name), type);
  const std::uint64_t block = static_cast<std::uint64_t>(tensor.type->block_elements);
  const std::uint64_t row = tensor.shape.empty() ? 1 : static_cast<std::uint64_t>(tensor.shape[0]);
  if (row % block != 0)
    fail("the tensor {} has rows of {} elements, not whole {} blocks of {}", in_quotes(name), row, tensor.type->name,
         block);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / block, static_cast<std::uint64_t>(tensor.type->block_bytes), &bytes) ||
      bytes > kMost)
    fail("the tensor {} has more bytes than can be counted", in_quotes(name));

  const std::uint64_t offset = number<std::uint64_t>("a tensor's offset");
  if (offset != data_bytes)
    fail("the tensor {} is said to start at {} of the data, but the tensors before it end at {}", in_quotes(name),
         offset, data_bytes);
  const std::uint64_t alignment = static_cast<std::uint64_t>(gguf.alignment);
  std::uint64_t end = 0;
  if (__builtin_add_overflow(offset, bytes, &end) || end > kMost - alignment)
    fail("the tensors up to {} have more bytes than can be counted", in_quotes(name));
  data_bytes = (end + alignment - 1) / alignment * alignment;
  tensor.offset = static_cast<std::int64_t>(offset);
  tensor.bytes = static_cast<std::int64_t>(bytes);
  gguf.tensors.emplace(name, std::move(tensor));
}

GgufFile Reader::read() {
  GgufFile gguf;
  gguf.file = name_;
  if (size_ < 4 || std::memcmp(data_, "GGUF", 4) != 0) fail("no GGUF file: it does not start with the letters GGUF");
  at_ = 4;
  gguf.version = number<std::uint32_t>("the version");
  if (gguf.version != 0 && (gguf.version & 0xffffu) == 0)
    refuse("written for a big-endian machine; convert it with gguf_convert_endian.py of llama.cpp");
  if (gguf.version != 2 && gguf.version != 3)
    refuse(fmt::format("GGUF version {}; regard reads 2 and 3{}", gguf.version,
                       gguf.version == 1 ? ", and a file this old must be converted again" : ""));
  const std::uint64_t tensors = count("tensors", kSmallestTensor);
  const std::uint64_t entries = count("metadata keys", kSmallestEntry);
  for (std::uint64_t i = 0; i < entries; ++i) entry(gguf);
  gguf.alignment = alignment(gguf);
  std::uint64_t data_bytes = 0;
  for (std::uint64_t i = 0; i < tensors; ++i) tensor(gguf, data_bytes);

  const std::uint64_t step = static_cast<std::uint64_t>(gguf.alignment);
  const std::uint64_t start = (at_ + step - 1) / step * step;  // at_ <= size of a file, step <= 1 MiB: no overflow
  gguf.data_offset = static_cast<std::int64_t>(start);
  for (auto& [name, tensor] : gguf.tensors) {
    const std::uint64_t offset = static_cast<std::uint64_t>(tensor.offset),
                        bytes = static_cast<std::uint64_t>(tensor.bytes);
    if (bytes > 0 && (start > size_ || offset > size_ - start || bytes > size_ - start - offset))
      fail("the tensor {} should have {} bytes from {} on, but the file has only {}", in_quotes(name), bytes,
           start + offset, size_);
    tensor.offset = static_cast<std::int64_t>(start + offset);
  }
  return gguf;
}

}  // namespace

GgufFile read_gguf(const MappedFile& file) {
  GgufFile gguf = Reader(file).read();
  file.check_intact();  // what was just read may have been zeros in place of a part cut off meanwhile
  return gguf;
}

}  // namespace regard
