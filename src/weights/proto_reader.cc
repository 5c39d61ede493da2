#include "weights/proto_reader.h"

#include <fmt/core.h>

#include <bit>

#include "tensor/error.h"

namespace regard {

void ProtoReader::fail(std::string_view why) const {
  throw Error(ErrorCode::bad_input, fmt::format("{}: byte {}: {}", file_, offset_ + at_, why),
              "the file is damaged, or is no protocol buffer");
}

std::uint64_t ProtoReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == message_.size()) fail("the message ends within a number");
    const auto byte = static_cast<std::uint8_t>(message_[at_++]);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  fail("a number has more than ten bytes");
}

bool ProtoReader::next() {
  if (at_ == message_.size()) return false;
  const std::uint64_t key = varint();
  if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF) fail("there is no such field");
  field_ = static_cast<std::uint32_t>(key >> 3);
  wire_ = static_cast<Wire>(key & 7);
  const auto take = [&](std::uint64_t n) {
    if (n > message_.size() - at_) fail("a field is longer than its message");
    bytes_ = message_.substr(at_, n);
    at_ += n;
  };
  switch (wire_) {
    case Wire::integer:
      integer_ = varint();
      break;
    case Wire::bytes:
      take(varint());
      break;
    case Wire::fixed64:
      take(8);
      break;
    case Wire::fixed32:
      take(4);
      break;
    default:
      fail("there is no such wire type");
  }
  return true;
}

void ProtoReader::expect(Wire wire) const {
  if (wire_ != wire) fail(fmt::format("the field {} before has another type than it should", field_));
}

std::uint64_t ProtoReader::integer() const {
  expect(Wire::integer);
  return integer_;
}

float ProtoReader::number() const {
  expect(Wire::fixed32);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 4; ++i) bits |= std::uint32_t{static_cast<std::uint8_t>(bytes_[i])} << (8 * i);
  return std::bit_cast<float>(bits);
}

std::string_view ProtoReader::bytes() const {
  expect(Wire::bytes);
  return bytes_;
}

ProtoReader ProtoReader::message() const {
  return ProtoReader(bytes(), file_, offset_ + static_cast<std::size_t>(bytes_.data() - message_.data()));
}

}  // namespace regard
