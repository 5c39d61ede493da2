#include "report/npz_writer.h"

#include <fcntl.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>

#include "tensor/error.h"
#include "text/utf8.h"

namespace regard {
namespace {

// The header of a .npy file: magic, version 1.0, length, and a Python dictionary padded so that the data starts at a
// multiple of 64 (numpy.lib.format).
std::string npy_header(const std::string& type, const std::vector<std::int64_t>& shape) {
  std::string axes;
  for (const std::int64_t extent : shape) axes += std::to_string(extent) + ',';
  std::string text = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + axes + "), }";
  constexpr std::size_t kPrefix = 10;
  text.append(63 - (kPrefix + text.size()) % 64, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::u32string code_points(std::string_view bytes) {
  std::u32string text;
  for (std::size_t i = 0; i < bytes.size();) {
    const Character character = character_at(bytes, i);
    if (character.code == kInvalidByte) {
      for (const char c : fmt::format("\\x{:02X}", static_cast<unsigned char>(bytes[i])))
        text += static_cast<char32_t>(c);
    } else {
      text += static_cast<char32_t>(character.code);
    }
    i += character.length;
  }
  return text;
}

}  // namespace

struct NpzWriter::Archive {
  zip_t* zip = nullptr;
  std::string path;
  std::list<std::string> kept;  // headers, ids and texts, until the archive is written

  [[noreturn]] void fail() const {
    throw Error(ErrorCode::io, fmt::format("cannot write {}: {}", path, zip_strerror(zip)),
                "make room there or choose another place");
  }
};

NpzWriter::NpzWriter(Output& out) : archive_(std::make_unique<Archive>()) {
  archive_->path = out.temporary();
  if (archive_->path.empty())
    throw Error(ErrorCode::bad_input, "a .npz file can only be written to a regular file", "choose another place");
  int error = 0;
  archive_->zip = zip_open(archive_->path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (!archive_->zip)
    throw Error(ErrorCode::io, fmt::format("cannot write {}: {}", archive_->path, std::strerror(errno)));
}

NpzWriter::~NpzWriter() {
  if (archive_->zip) zip_discard(archive_->zip);
}

void NpzWriter::add_array(const std::string& name, const std::string& type, const void* data, std::uint64_t bytes,
                          const std::vector<std::int64_t>& shape) {
  const std::string& header = archive_->kept.emplace_back(npy_header(type, shape));
  zip_buffer_fragment_t fragments[2] = {
      {reinterpret_cast<zip_uint8_t*>(const_cast<char*>(header.data())), header.size()},
      {static_cast<zip_uint8_t*>(const_cast<void*>(data)), bytes}};
  zip_source_t* source = zip_source_buffer_fragment(archive_->zip, fragments, bytes == 0 ? 1 : 2, 0);
  if (!source) archive_->fail();
  const zip_int64_t index = zip_file_add(archive_->zip, (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    archive_->fail();
  }
  if (zip_set_file_compression(archive_->zip, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0) archive_->fail();
  // The first day there is: the same arrays are the same bytes whenever they are written.
  constexpr zip_uint16_t kMidnight = 0, kFirstDay = 0x21;
  if (zip_file_set_dostime(archive_->zip, static_cast<zip_uint64_t>(index), kMidnight, kFirstDay, 0) != 0)
    archive_->fail();
}

void NpzWriter::add(const std::string& name, std::span<const float> values, std::vector<std::int64_t> shape) {
  add_array(name, "<f4", values.data(), values.size_bytes(), shape);
}

void NpzWriter::add(const std::string& name, std::span<const double> values, std::vector<std::int64_t> shape) {
  add_array(name, "<f8", values.data(), values.size_bytes(), shape);
}

void NpzWriter::add(const std::string& name, std::span<const std::int64_t> values, std::vector<std::int64_t> shape) {
  add_array(name, "<i8", values.data(), values.size_bytes(), shape);
}

void NpzWriter::add(const std::string& name, std::span<const std::int32_t> values, std::vector<std::int64_t> shape) {
  add_array(name, "<i4", values.data(), values.size_bytes(), shape);
}

void NpzWriter::add_ids(const std::string& name, std::span<const TokenPiece> tokens) {
  std::string& data = archive_->kept.emplace_back();
  for (const TokenPiece& token : tokens) data.append(reinterpret_cast<const char*>(&token.id), sizeof(token.id));
  add_array(name, "<i4", data.data(), data.size(), {std::ssize(tokens)});
}

void NpzWriter::add_texts(const std::string& name, std::span<const std::string> texts) {
  std::vector<std::u32string> decoded;
  std::size_t widest = 1;
  for (const std::string& text : texts) {
    decoded.push_back(code_points(text));
    widest = std::max(widest, decoded.back().size());
  }
  std::string& data = archive_->kept.emplace_back(texts.size() * widest * 4, '\0');
  for (std::size_t i = 0; i < decoded.size(); ++i)
    std::memcpy(data.data() + i * widest * 4, decoded[i].data(), decoded[i].size() * 4);
  add_array(name, "<U" + std::to_string(widest), data.data(), data.size(), {static_cast<std::int64_t>(texts.size())});
}

void NpzWriter::finish() {
  if (zip_close(archive_->zip) != 0) archive_->fail();
  archive_->zip = nullptr;
  const int file =
      open(archive_->path.c_str(), O_RDONLY | O_CLOEXEC);  // libzip renames, but does not wait for the disk
  if (file < 0 || fsync(file) != 0) {
    const int error = errno;
    if (file >= 0) close(file);
    throw Error(ErrorCode::io, fmt::format("cannot write {}: {}", archive_->path, std::strerror(error)));
  }
  close(file);
}

}  // namespace regard
