#include "weights/partial_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "weights/new_file.h"

namespace regard {

PartialFile::PartialFile(const std::filesystem::path& path, std::string_view variable)
    : path_(path), variable_(variable) {
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) fail_to_write(path_, errno, variable_);
  size_ = lseek(file_, 0, SEEK_END);
  if (size_ < 0) {
    const int error = errno;
    close(file_);
    fail_to_write(path_, error, variable_);
  }
}

PartialFile::~PartialFile() { close(file_); }

void PartialFile::append(std::string_view bytes) {
  write_all(file_, path_, bytes.data(), bytes.size(), variable_);
  size_ += static_cast<std::int64_t>(bytes.size());
}

void PartialFile::restart() {
  if (ftruncate(file_, 0) != 0) fail_to_write(path_, errno, variable_);
  size_ = 0;
}

void PartialFile::flush() {
  if (fsync(file_) != 0) fail_to_write(path_, errno, variable_);
}

}  // namespace regard
