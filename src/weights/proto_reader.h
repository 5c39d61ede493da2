#pragma once
// Protocol buffers, as far as reading a message field by field goes (protobuf.dev, "Encoding").

#include <cstdint>
#include <string>
#include <string_view>

namespace regard {

class ProtoReader {
 public:
  // `file` is what errors call it; `message` begins at byte `offset` of it. Both outlive the reader.
  ProtoReader(std::string_view message, const std::string& file, std::size_t offset = 0)
      : message_(message), file_(file), offset_(offset) {}

  // Goes to the next field; false at the end. Error{bad_input} naming the byte when the message is cut or damaged.
  bool next();
  std::uint32_t field() const { return field_; }
  // The field's value; of another wire type it is Error{bad_input}.
  std::uint64_t integer() const;
  float number() const;
  std::string_view bytes() const;
  ProtoReader message() const;

 private:
  enum class Wire { integer = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  [[noreturn]] void fail(std::string_view why) const;
  std::uint64_t varint();
  void expect(Wire wire) const;

  std::string_view message_;
  const std::string& file_;
  std::size_t offset_;
  std::size_t at_ = 0;
  std::uint32_t field_ = 0;
  Wire wire_ = Wire::integer;
  std::uint64_t integer_ = 0;
  std::string_view bytes_;
};

}  // namespace regard
