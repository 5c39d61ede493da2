#pragma once
// A file mapped read-only into memory, which says so when it is cut or rewritten under the reader's hands.
//
// A process that reads a mapped page past the end of a file that somebody truncated gets SIGBUS, whose default action
// is to kill it without a word. So the first mapping installs a SIGBUS handler (process-wide, once; the way Wayland
// guards shared buffers): a fault inside one of our mappings puts zero pages there, marks the mapping damaged and lets
// the reader go on; any other fault is handed to the handler that was there before. Whoever used the bytes asks
// check_intact() when the work is done, and gets an Error instead of a result computed from zeros. What this does not
// promise: if the program replaces the SIGBUS handler afterwards, a truncation is fatal again.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace regard {

class MappedFile {
 public:
  // Errors: not_found (no such file), bad_input (a folder, or an empty file), io (the system refuses to open or map
  // it).
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::byte* data() const { return data_; }
  std::int64_t size() const { return size_; }  // bytes, as they were when the file was opened
  const std::filesystem::path& path() const { return path_; }

  // Throws Error{io} naming the file if it has another size or modification time than when it was opened, or if a read
  // hit a page that was gone. One fstat: cheap enough for once per forward pass.
  void check_intact() const;

 private:
  struct Guard;  // what the signal handler knows of this mapping
  void release() noexcept;

  std::filesystem::path path_;
  int file_ = -1;
  std::byte* data_ = nullptr;
  std::int64_t size_ = 0;
  std::int64_t modified_ns_ = 0;
  Guard* guard_ = nullptr;
};

}  // namespace regard
