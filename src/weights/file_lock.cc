#include "weights/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "tensor/error.h"
#include "weights/new_file.h"

namespace regard {

FileLock::FileLock(const std::filesystem::path& path, std::string_view variable,
                   const std::function<void()>& while_waiting) {
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) fail_to_write(path, errno, variable);
  try {
    while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK)
        throw Error(ErrorCode::io,
                    fmt::format("{}: cannot be locked: {}", path.string(), std::generic_category().message(errno)),
                    fmt::format("set {} to a folder on a local disk", variable));
      while_waiting();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  } catch (...) {
    close(file_);
    throw;
  }
}

FileLock::~FileLock() { close(file_); }

}  // namespace regard
