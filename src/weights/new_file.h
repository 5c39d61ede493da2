#pragma once
// A file being written, which is not there unless it was finished.

#include <cstdint>
#include <filesystem>

namespace regard {

class NewFile {
 public:
  // Errors of all of these: io, with the folder and what to do when the disk is full.
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();  // removes the file unless it was finished
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void finish();  // all of it on the disk, or an error

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

// Makes renames and new names inside `folder` last.
void sync_folder(const std::filesystem::path& folder);

// Error{io} for a failed write to `path`, for the reason in `error_number` (errno).
[[noreturn]] void fail_to_write(const std::filesystem::path& path, int error_number);

}  // namespace regard
