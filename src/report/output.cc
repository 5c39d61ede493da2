#include "report/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tensor/error.h"

namespace regard {
namespace {

std::string hint_for(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "make room there or choose another place";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a place that you may write to";
    case ENOENT:
      return "make the folder first";
    default:
      return {};
  }
}

}  // namespace

Output::Output(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), buffer_(kBufferBytes, '\0') {}

Output::Output(Output&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      owned_(std::exchange(other.owned_, false)),
      name_(std::move(other.name_)),
      temporary_(std::exchange(other.temporary_, {})),
      destination_(std::move(other.destination_)),
      memory_(std::move(other.memory_)),
      buffer_(std::move(other.buffer_)),
      used_(std::exchange(other.used_, 0)),
      written_(other.written_) {}

Output::~Output() {
  if (owned_) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Output Output::to_descriptor(int descriptor, std::string name) { return Output(descriptor, std::move(name)); }

Output Output::to_memory() { return Output(-1, "memory"); }

Output Output::to_file(const std::filesystem::path& path) {
  Output out(-1, path.string());
  std::string destination = path.string();
  struct stat there {};
  if (stat(destination.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) out.fail(EISDIR);
    if (char* real = realpath(destination.c_str(), nullptr)) {  // a link stays a link
      destination = real;
      std::free(real);
    }
    if (!S_ISREG(there.st_mode)) {
      out.descriptor_ = open(destination.c_str(), O_WRONLY | O_CLOEXEC);
      if (out.descriptor_ < 0) out.fail(errno);
      out.owned_ = true;
      return out;
    }
    if (access(destination.c_str(), W_OK) != 0) out.fail(errno);  // a read-only file is not to be replaced
  }
  std::string temporary = destination + ".XXXXXX";
  out.descriptor_ = mkostemp(temporary.data(), O_CLOEXEC);
  if (out.descriptor_ < 0) out.fail(errno);
  out.owned_ = true;
  out.temporary_ = std::move(temporary);
  out.destination_ = std::move(destination);
  // mkostemp makes files for the owner alone; a report gets the rights that any new file gets.
  const mode_t mask = umask(0);
  umask(mask);
  const bool replaces = there.st_mode != 0;
  fchmod(out.descriptor_, replaces ? there.st_mode & 07777 : 0666 & ~mask);
  return out;
}

void Output::flush() {
  const std::size_t n = std::exchange(used_, 0);
  if (n != 0) write_through(std::string_view(buffer_.data(), n));
}

void Output::write_large(std::string_view bytes) {
  flush();
  if (bytes.size() >= kBufferBytes) return write_through(bytes);
  bytes.copy(buffer_.data(), bytes.size());
  used_ = bytes.size();
}

void Output::write_through(std::string_view bytes) {
  written_ += static_cast<std::int64_t>(bytes.size());
  if (descriptor_ < 0) {
    memory_.append(bytes);
    return;
  }
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void Output::finish() {
  flush();
  if (temporary_.empty()) return;
  if (fsync(descriptor_) != 0) fail(errno);
  const int descriptor = std::exchange(descriptor_, -1);
  owned_ = false;
  if (close(descriptor) != 0) fail(errno);
  if (rename(temporary_.c_str(), destination_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void Output::fail(int error) const {
  throw Error(ErrorCode::io, fmt::format("cannot write {}: {}", name_, std::strerror(error)), hint_for(error));
}

}  // namespace regard
