#pragma once
// A lock between processes, held by an open file (flock).

#include <filesystem>
#include <functional>
#include <string_view>

namespace regard {

class FileLock {
 public:
  // Makes the file if need be and waits for the lock; `while_waiting` is called about ten times a second and may throw.
  // Error{io}, whose hint says to set `variable` to a folder on a local disk.
  FileLock(const std::filesystem::path& path, std::string_view variable, const std::function<void()>& while_waiting);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  int file() const { return file_; }  // a child process that keeps it open keeps the lock

 private:
  int file_ = -1;
};

}  // namespace regard
