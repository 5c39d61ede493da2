#pragma once
// Where a report's bytes go: a file that appears whole or not at all, or an open descriptor.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace regard {

class Output {
 public:
  // `name` is for messages: "standard output". The descriptor stays open.
  static Output to_descriptor(int descriptor, std::string name);
  // Written beside `path` under a temporary name and moved there by finish(): whoever looks sees the old file or the
  // whole new one. A link is followed; what is not a regular file (a device, a pipe) is written directly. Error{io}.
  static Output to_file(const std::filesystem::path& path);
  // Kept in memory: see text().
  static Output to_memory();

  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();  // without finish() a file is taken away again

  // Error{io} naming the place and the system's reason.
  void write(std::string_view bytes) {
    if (bytes.size() > kBufferBytes - used_) return write_large(bytes);
    bytes.copy(buffer_.data() + used_, bytes.size());
    used_ += bytes.size();
  }
  void flush();
  void finish();

  std::int64_t written() const { return written_ + static_cast<std::int64_t>(used_); }
  // The memory form's bytes, after finish().
  const std::string& text() const { return memory_; }
  // The temporary file while there is one, else empty: for whoever must remove it when the process is killed.
  const std::string& temporary() const { return temporary_; }

 private:
  static constexpr std::size_t kBufferBytes = 1 << 16;
  explicit Output(int descriptor, std::string name);
  void write_large(std::string_view bytes);
  void write_through(std::string_view bytes);
  [[noreturn]] void fail(int error) const;

  int descriptor_ = -1;      // -1: memory
  bool owned_ = false;       // close it
  std::string name_;         // for messages
  std::string temporary_;    // file form: what is being written
  std::string destination_;  // file form: where it goes
  std::string memory_;
  std::string buffer_;
  std::size_t used_ = 0;
  std::int64_t written_ = 0;
};

}  // namespace regard
