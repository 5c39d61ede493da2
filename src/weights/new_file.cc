#include "weights/new_file.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "tensor/error.h"

namespace regard {

namespace {

// A write past the shell's limit of file sizes raises SIGXFSZ, which would end the process; held back, it is an error
// like any other (EFBIG).
class HoldFileSizeSignal {
 public:
  HoldFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~HoldFileSizeSignal() {
    const int error = errno;
    const timespec now{};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  HoldFileSizeSignal(const HoldFileSizeSignal&) = delete;
  HoldFileSizeSignal& operator=(const HoldFileSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
  bool was_pending_;
};

}  // namespace

void fail_to_write(const std::filesystem::path& path, int error_number, std::string_view variable) {
  const std::string reason = std::generic_category().message(error_number);
  const bool full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  const std::string choose = variable.empty() ? "name a file" : fmt::format("set {} to a folder", variable);
  throw Error(ErrorCode::io, fmt::format("{}: cannot be written: {}", path.string(), reason),
              full ? fmt::format("make room there, or {} on another disk", choose)
                   : fmt::format("{} {}", choose, variable.empty() ? "where you may write" : "that you may write to"));
}

void write_all(int file, const std::filesystem::path& path, const void* data, std::size_t bytes,
               std::string_view variable) {
  const HoldFileSizeSignal hold;
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t wrote = ::write(file, at, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail_to_write(path, errno, variable);
    at += wrote;
    bytes -= static_cast<std::size_t>(wrote);
  }
}

NewFile::NewFile(const std::filesystem::path& path, std::string_view variable) : path_(path), variable_(variable) {
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) fail_to_write(path_, errno, variable_);
}

NewFile::~NewFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(path_.c_str());
}

void NewFile::write(const void* data, std::size_t bytes) { write_all(file_, path_, data, bytes, variable_); }

void NewFile::finish() {
  if (fsync(file_) != 0) fail_to_write(path_, errno, variable_);
  const int file = std::exchange(file_, -1);
  if (close(file) != 0 && errno != EINTR) {
    const int error = errno;
    unlink(path_.c_str());
    fail_to_write(path_, error, variable_);
  }
}

void make_folder(const std::filesystem::path& folder, std::string_view variable) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail_to_write(folder, error.value(), variable);
}

void sync_folder(const std::filesystem::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail_to_write(folder, errno);
  const int error = fsync(file) == 0 ? 0 : errno;
  close(file);
  if (error != 0 && error != EINVAL) fail_to_write(folder, error);  // EINVAL: a file system that has no such thing
}

}  // namespace regard
