#pragma once
// A file being written, which is not there unless it was finished.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace regard {

class NewFile {
 public:
  // Errors of all of these: io, with the folder and what to do when the disk is full: `variable` (of the environment)
  // can name another folder.
  explicit NewFile(const std::filesystem::path& path, std::string_view variable = "REGARD_HOME");
  ~NewFile();  // removes the file unless it was finished
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void finish();  // all of it on the disk, or an error

 private:
  std::filesystem::path path_;
  std::string variable_;
  int file_ = -1;
};

// All of it to an open file. A limit of file sizes (`ulimit -f`) is an error like any other.
void write_all(int file, const std::filesystem::path& path, const void* data, std::size_t bytes,
               std::string_view variable);

// With all that it lies in, where it is not there yet.
void make_folder(const std::filesystem::path& folder, std::string_view variable = "REGARD_HOME");

// Makes renames and new names inside `folder` last.
void sync_folder(const std::filesystem::path& folder);

// Error{io} for a failed write to `path`, for the reason in `error_number` (errno). `variable`: of the environment,
// names another folder to write to; empty when the person named the file.
[[noreturn]] void fail_to_write(const std::filesystem::path& path, int error_number,
                                std::string_view variable = "REGARD_HOME");

}  // namespace regard
